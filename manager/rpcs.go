package manager

// class says what a manager does with a call.
type class int

const (
	denied   class = iota // nobody said who may call it
	local                 // this manager answers for itself
	reading               // any manager answers, as fresh as was asked for
	writing               // the leader does it
	leading               // the leader answers, and nothing is changed
	asking                // the leader answers if there is one, else this manager for itself
	internal              // between managers
)

// prefixes of the method names.
const (
	control    = "/docker.swarmkit.v1.Control/"
	objects    = "/holdfast.v1.Objects/"
	stacks     = "/holdfast.v1.Stacks/"
	cluster    = "/holdfast.v1.Cluster/"
	raftRPC    = "/holdfast.v1.Raft/"
	membership = "/docker.swarmkit.v1.RaftMembership/"
)

// classes tells the class of each method that managers serve. A method that is not here is
// denied; a test walks all that are registered.
func classes() map[string]class {
	all := map[string]class{
		"/docker.swarmkit.v1.Health/Check": local,
		"/grpc.health.v1.Health/Check":     local,
		"/grpc.health.v1.Health/Watch":     local,
		"/grpc.health.v1.Health/List":      local,

		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      local,
		"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": local,

		objects + "Get": reading, objects + "List": reading, objects + "Txn": writing,
		stacks + "Deploy": writing, stacks + "List": reading, stacks + "Remove": writing,
		cluster + "Status": leading, cluster + "Members": asking, cluster + "RemoveMember": writing,
		membership + "Join": writing, membership + "Leave": writing,
		raftRPC + "Messages": internal, raftRPC + "Snapshot": internal, raftRPC + "Hello": internal,

		control + "ListServiceStatuses": reading,
		control + "RemoveNode":          writing,
		control + "RemoveTask":          writing,
		control + "UpdateNode":          writing,
		control + "UpdateCluster":       writing,
		control + "CreateNetwork":       writing,
		control + "RemoveNetwork":       writing,
	}
	for _, kind := range []string{"Node", "Task", "Service", "Network", "Cluster", "Secret", "Config"} {
		all[control+"Get"+kind] = reading
		all[control+"List"+kind+"s"] = reading
	}
	for _, kind := range []string{"Service", "Secret", "Config"} {
		for _, verb := range []string{"Create", "Update", "Remove"} {
			all[control+verb+kind] = writing
		}
	}
	return all
}
