package manager

import "holdfast/manager/call"

// prefixes of the method names.
const (
	control    = "/docker.swarmkit.v1.Control/"
	objects    = "/holdfast.v1.Objects/"
	stacks     = "/holdfast.v1.Stacks/"
	watch      = "/holdfast.v1.Watch/"
	cluster    = "/holdfast.v1.Cluster/"
	raftRPC    = "/holdfast.v1.Raft/"
	membership = "/docker.swarmkit.v1.RaftMembership/"
)

// classes tells the class of each method that managers serve. A method that is not here is
// denied; a test walks all that are registered.
func classes() map[string]call.Class {
	all := map[string]call.Class{
		"/docker.swarmkit.v1.Health/Check": call.Local,
		"/grpc.health.v1.Health/Check":     call.Local,
		"/grpc.health.v1.Health/Watch":     call.Local,
		"/grpc.health.v1.Health/List":      call.Local,

		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      call.Local,
		"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": call.Local,

		objects + "Get": call.Reading, objects + "List": call.Reading, objects + "Scan": call.Reading,
		objects + "Read": call.Reading, objects + "History": call.Reading, objects + "Diff": call.Reading,
		objects + "Txn": call.Writing,
		watch + "Watch": call.Reading, "/docker.swarmkit.v1.Watch/Watch": call.Reading,
		stacks + "Deploy": call.Writing, stacks + "Stage": call.Writing, stacks + "Remove": call.Writing,
		stacks + "Rollback": call.Writing, stacks + "Compare": call.Leading,
		stacks + "List": call.Reading, stacks + "History": call.Reading, stacks + "GetRelease": call.Reading,
		stacks + "ExportRelease": call.Reading, stacks + "ImportRelease": call.Writing,
		cluster + "Status": call.Leading, cluster + "Members": call.Asking, cluster + "RemoveMember": call.Writing,
		cluster + "Compact": call.Writing,
		membership + "Join": call.Writing, membership + "Leave": call.Writing,
		raftRPC + "Messages": call.Internal, raftRPC + "Snapshot": call.Internal, raftRPC + "Hello": call.Internal,

		control + "ListServiceStatuses": call.Reading,
		control + "RemoveNode":          call.Writing,
		control + "RemoveTask":          call.Writing,
		control + "UpdateNode":          call.Writing,
		control + "UpdateCluster":       call.Writing,
		control + "CreateNetwork":       call.Writing,
		control + "RemoveNetwork":       call.Writing,
	}
	for _, kind := range []string{"Node", "Task", "Service", "Network", "Cluster", "Secret", "Config"} {
		all[control+"Get"+kind] = call.Reading
		all[control+"List"+kind+"s"] = call.Reading
	}
	for _, kind := range []string{"Service", "Secret", "Config"} {
		for _, verb := range []string{"Create", "Update", "Remove"} {
			all[control+verb+kind] = call.Writing
		}
	}
	return all
}
