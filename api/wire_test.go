package api_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gogo/protobuf/protoc-gen-gogo/descriptor"

	"holdfast/internal/testinput"
)

const wirePackage = "docker.swarmkit.v1"

// firstOwn is where the numbers of our own additions start.
const firstOwn = 1000

// leftOut returns what SwarmKit v2 has and we do not speak. A name stands for a message with
// all that is in it, an enum or a service; one with a dot and a member, for that alone.
func leftOut() []string {
	groups := []string{
		// Extensions, resources and volumes: kinds that we do not have.
		`
		Control.CreateExtension Control.CreateResource Control.CreateVolume Control.GetExtension
		Control.GetResource Control.GetVolume Control.ListResources Control.ListVolumes
		Control.RemoveExtension Control.RemoveResource Control.RemoveVolume
		Control.UpdateResource Control.UpdateVolume StoreAction.extension StoreAction.resource
		StoreAction.volume CreateExtensionRequest CreateExtensionResponse CreateResourceRequest
		CreateResourceResponse CreateVolumeRequest CreateVolumeResponse GetExtensionRequest
		GetExtensionResponse GetResourceRequest GetResourceResponse GetVolumeRequest
		GetVolumeResponse ListResourcesRequest ListResourcesResponse ListVolumesRequest
		ListVolumesResponse RemoveExtensionRequest RemoveExtensionResponse RemoveResourceRequest
		RemoveResourceResponse RemoveVolumeRequest RemoveVolumeResponse UpdateResourceRequest
		UpdateResourceResponse UpdateVolumeRequest UpdateVolumeResponse Extension Resource
		Volume VolumeSpec CapacityRange TopologyRequirement VolumeAccessMode VolumeAssignment
		VolumeCapability VolumeInfo VolumePublishStatus VolumeSecret`,
		// Certificates are issued otherwise, for now.
		`
		CA GetRootCACertificateRequest GetRootCACertificateResponse GetUnlockKeyRequest
		GetUnlockKeyResponse NodeCA IssueNodeCertificateRequest IssueNodeCertificateResponse
		NodeCertificateStatusRequest NodeCertificateStatusResponse`,
		// There are no agents to dispatch tasks to, to attach networks for or to read logs from.
		`
		Assignment AssignmentChange AssignmentsMessage AssignmentsRequest Dispatcher
		HeartbeatRequest HeartbeatResponse SessionMessage SessionRequest TasksMessage
		TasksRequest UpdateTaskStatusRequest UpdateTaskStatusResponse UpdateVolumeStatusRequest
		UpdateVolumeStatusResponse AttachNetworkRequest AttachNetworkResponse
		DetachNetworkRequest DetachNetworkResponse ResourceAllocator ListenSubscriptionsRequest
		LogAttr LogBroker LogContext LogMessage LogSelector LogStream LogSubscriptionOptions
		Logs PublishLogsMessage PublishLogsResponse SubscribeLogsMessage SubscribeLogsRequest
		SubscriptionMessage`,
		// Raft messages, snapshots and what is on disk have a form of our own (holdfast.v1).
		`
		InternalRaftRequest ProcessRaftMessageRequest ProcessRaftMessageResponse Raft
		ResolveAddressRequest ResolveAddressResponse StreamRaftMessageRequest
		StreamRaftMessageResponse ClusterSnapshot Snapshot StoreSnapshot MaybeEncryptedRecord
		Peer WeightedPeer`,
		// Kinds that we do not have.
		`
		Object.extension Object.resource Object.volume`,
		// No other message refers to it.
		`
		Image`,
	}
	return strings.Fields(strings.Join(groups, " "))
}

// ours returns the messages that stand between SwarmKit's and are not theirs. Other messages
// refer to them by numbers of our own.
func ours() []string { return []string{"message HistoryConfig"} }

// TestWire holds our descriptors against the table of SwarmKit's: what both have must be the
// same, and what only one has must be known.
func TestWire(t *testing.T) {
	table := wireTable(t, testinput.Path(t, "wire", "swarmkit-v2.tsv"))
	own := map[string]string{}
	for _, file := range fileDescriptors(t) {
		if file.GetPackage() == wirePackage {
			addFile(own, file)
		}
	}
	if len(own) < 500 {
		t.Fatalf("only %d facts about our own descriptors", len(own))
	}

	for _, name := range slices.Sorted(maps.Keys(own)) {
		switch want, ok := table[name]; {
		case !ok && slices.Contains(ours(), name):
		case !ok:
			t.Errorf("%s is not SwarmKit's, and not numbered as our own", name)
		case own[name] != want:
			t.Errorf("%s is %q, SwarmKit's is %q", name, own[name], want)
		}
	}

	needed := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if _, ok := own[name]; ok {
			continue
		}
		entry := leftOutBy(name)
		if entry == "" {
			t.Errorf("%s is missing and not listed as left out", name)
		}
		needed[entry] = true
	}
	for _, entry := range leftOut() {
		if !needed[entry] {
			t.Errorf("%s is listed as left out, and it is not", entry)
		}
	}
	// Of what an entry names there is nothing: it must not hide that one part is gone.
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if entry := leftOutBy(name); entry != "" {
			t.Errorf("%s is there, and %s is listed as left out", name, entry)
		}
	}
}

// leftOutBy returns the entry of leftOut that covers a fact, or "".
func leftOutBy(fact string) string {
	_, name, _ := strings.Cut(fact, " ")
	for _, entry := range leftOut() {
		if name == entry || strings.HasPrefix(name, entry+".") {
			return entry
		}
	}
	return ""
}

// wireTable reads the table as facts: "kind name" to what is to be the same.
func wireTable(t *testing.T, path string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		col := strings.Split(line, "\t")
		if len(col) != 7 {
			t.Fatalf("%d columns: %q", len(col), line)
		}
		kind, parent, name, number, typ, note := col[0], col[2], col[3], col[4], col[5], col[6]
		switch kind {
		case "message":
			out["message "+parent] = ""
		case "field", "enum":
			out[kind+" "+parent+"."+name] = fact(number, typ, note)
		case "rpc":
			out[kind+" "+parent+"."+name] = fact("", typ, note)
		default:
			t.Fatalf("unknown kind: %q", line)
		}
	}
	return out
}

func fact(number, typ, note string) string {
	return strings.TrimSpace(number + " " + typ + " " + note)
}

// addFile adds the facts about a file of ours to out, in the table's form. What has a number
// of our own is left away.
func addFile(out map[string]string, file *descriptor.FileDescriptorProto) {
	for _, m := range file.GetMessageType() {
		addMessage(out, "", m)
	}
	for _, e := range file.GetEnumType() {
		addEnum(out, "", e)
	}
	for _, s := range file.GetService() {
		for _, m := range s.GetMethod() {
			note := ""
			switch {
			case m.GetClientStreaming() && m.GetServerStreaming():
				note = "bidi-streaming"
			case m.GetClientStreaming():
				note = "client-streaming"
			case m.GetServerStreaming():
				note = "server-streaming"
			}
			typ := local(m.GetInputType()) + " -> " + local(m.GetOutputType())
			out["rpc "+s.GetName()+"."+m.GetName()] = fact("", typ, note)
		}
	}
}

func addEnum(out map[string]string, prefix string, e *descriptor.EnumDescriptorProto) {
	for _, v := range e.GetValue() {
		if v.GetNumber() < firstOwn {
			out["enum "+prefix+e.GetName()+"."+v.GetName()] = fmt.Sprint(v.GetNumber())
		}
	}
}

func addMessage(out map[string]string, prefix string, m *descriptor.DescriptorProto) {
	name := prefix + m.GetName()
	entries := map[string]*descriptor.DescriptorProto{}
	for _, nested := range m.GetNestedType() {
		if nested.GetOptions().GetMapEntry() {
			entries[nested.GetName()] = nested
		} else {
			addMessage(out, name+".", nested)
		}
	}
	for _, e := range m.GetEnumType() {
		addEnum(out, name+".", e)
	}
	fields := 0
	for _, f := range m.GetField() {
		if f.GetNumber() >= firstOwn {
			continue
		}
		fields++
		note := ""
		if f.OneofIndex != nil {
			note = "oneof " + m.GetOneofDecl()[f.GetOneofIndex()].GetName()
		}
		typ := typeName(f)
		if f.GetLabel() == descriptor.FieldDescriptorProto_LABEL_REPEATED {
			last := f.GetTypeName()[strings.LastIndexByte(f.GetTypeName(), '.')+1:]
			if entry := entries[last]; entry != nil && f.IsMessage() {
				typ = "map<" + typeName(entry.Field[0]) + "," + typeName(entry.Field[1]) + ">"
			} else {
				typ = "repeated " + typ
			}
		}
		out["field "+name+"."+f.GetName()] = fact(fmt.Sprint(f.GetNumber()), typ, note)
	}
	if fields == 0 {
		out["message "+name] = ""
	}
}

// typeName returns a field's type as the table writes it, without its label.
func typeName(f *descriptor.FieldDescriptorProto) string {
	if f.GetTypeName() != "" {
		return local(f.GetTypeName())
	}
	return strings.ToLower(strings.TrimPrefix(f.GetType().String(), "TYPE_"))
}

// local drops the package of the table's own types.
func local(name string) string {
	name = strings.TrimPrefix(name, ".")
	return strings.TrimPrefix(name, wirePackage+".")
}
