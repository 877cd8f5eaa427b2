package fielddiff_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gogo/protobuf/types"

	"holdfast/api"
	"holdfast/internal/apijson"
	"holdfast/internal/descriptors"
	"holdfast/internal/fielddiff"
)

func files(t testing.TB) *descriptors.Files {
	t.Helper()
	files, err := descriptors.New()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func service(change func(*api.Service)) *api.Service {
	s := &api.Service{
		ID:   "s1",
		Meta: api.Meta{Version: api.Version{Index: 1}},
		Spec: api.ServiceSpec{
			Annotations: api.Annotations{Name: "web", Labels: map[string]string{"tier": "front", "a.b/c": "1"}},
			Task: api.TaskSpec{Runtime: &api.TaskSpec_Container{Container: &api.ContainerSpec{
				Image: "app:1", Env: []string{"A=1", "B=2", "C=3", "D=4"},
				StopGracePeriod: &types.Duration{Seconds: 10},
			}}},
			Mode: &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: 3}},
			Endpoint: &api.EndpointSpec{Ports: []*api.PortConfig{
				{Name: "http", TargetPort: 80}, {Name: "https", TargetPort: 443, PublishedPort: 8443},
			}},
		},
	}
	if change != nil {
		change(s)
	}
	return s
}

func container(s *api.Service) *api.ContainerSpec { return s.Spec.Task.GetContainer() }

// told gives fields as text.
func told(fields []fielddiff.Field) []string {
	var out []string
	for _, f := range fields {
		s := fmt.Sprintf("%s: %s -> %s", f.Path, f.Old, f.New)
		if f.Secret {
			s += " secret"
		}
		out = append(out, s)
	}
	return out
}

func TestDiff(t *testing.T) {
	d := fielddiff.New(files(t))
	for name, c := range map[string]struct {
		change func(*api.Service)
		want   []string
	}{
		"what follows from the history is left out": {
			func(s *api.Service) {
				s.PreviousSpec = s.Spec.Copy()
				s.Meta.Version.Index, s.SpecVersion = 2, &api.Version{Index: 2}
				s.PreviousSpecVersion = &api.Version{Index: 1}
				container(s).Image = "app:2"
			},
			[]string{`spec.task.container.image: "app:1" -> "app:2"`},
		},
		"nothing":  {nil, nil},
		"the meta": {func(s *api.Service) { s.Meta.Version.Index = 7; s.Meta.UpdatedAt = &types.Timestamp{Seconds: 1} }, nil},
		"a text": {
			func(s *api.Service) { container(s).Image = "app:<2>" },
			[]string{`spec.task.container.image: "app:1" -> "app:<2>"`},
		},
		"a text that was not there": {
			func(s *api.Service) { container(s).Hostname = "h\"\n" },
			[]string{`spec.task.container.hostname:  -> "h\"\n"`},
		},
		"a number": {
			func(s *api.Service) { s.Spec.GetReplicated().Replicas = 1 << 60 },
			[]string{`spec.replicated.replicas: "3" -> "1152921504606846976"`},
		},
		"a number becomes 0": {
			func(s *api.Service) { s.Spec.GetReplicated().Replicas = 0 },
			[]string{`spec.replicated.replicas: "3" -> "0"`},
		},
		"a boolean, and the order of fields": {
			func(s *api.Service) { s.PendingDelete = true; container(s).Tty = true },
			[]string{`spec.task.container.tty: false -> true`, `pendingDelete: false -> true`},
		},
		"an enum": {
			func(s *api.Service) { s.Spec.Endpoint.Ports[0].Protocol = api.PortConfig_UDP },
			[]string{`spec.endpoint.ports[0].protocol: "TCP" -> "UDP"`},
		},
		"an enum that is not known": {
			func(s *api.Service) { s.Spec.Endpoint.Ports[0].Protocol = 77 },
			[]string{`spec.endpoint.ports[0].protocol: "TCP" -> 77`},
		},
		"labels": {
			func(s *api.Service) {
				s.Spec.Annotations.Labels = map[string]string{"tier": "back", "x[0]": "1", "": "", "é": "2"}
			},
			[]string{
				`spec.annotations.labels[""]:  -> ""`,
				`spec.annotations.labels[a.b/c]: "1" -> `,
				`spec.annotations.labels[tier]: "front" -> "back"`,
				`spec.annotations.labels["x[0]"]:  -> "1"`,
				`spec.annotations.labels[é]:  -> "2"`,
			},
		},
		"an element": {
			func(s *api.Service) { container(s).Env[2] = "C=4" },
			[]string{`spec.task.container.env[2]: "C=3" -> "C=4"`},
		},
		"elements of which some are the same": {
			func(s *api.Service) { container(s).Env = []string{"A=1", "B=3", "C=3", "D=5"} },
			[]string{`spec.task.container.env[1]: "B=2" -> "B=3"`, `spec.task.container.env[3]: "D=4" -> "D=5"`},
		},
		"an element is put between": {
			func(s *api.Service) { container(s).Env = []string{"A=1", "X", "B=2", "C=3", "D=4"} },
			[]string{`spec.task.container.env[1]:  -> "X"`},
		},
		"an element is taken out": {
			func(s *api.Service) { container(s).Env = []string{"A=1", "C=3", "D=4"} },
			[]string{`spec.task.container.env[1]: "B=2" -> `},
		},
		"two become one": {
			func(s *api.Service) { container(s).Env = []string{"A=1", "X", "D=4"} },
			[]string{
				`spec.task.container.env[1]: "B=2" -> `, `spec.task.container.env[2]: "C=3" -> `,
				`spec.task.container.env[1]:  -> "X"`,
			},
		},
		"a list goes": {
			func(s *api.Service) { container(s).Env = nil },
			[]string{
				`spec.task.container.env[0]: "A=1" -> `, `spec.task.container.env[1]: "B=2" -> `,
				`spec.task.container.env[2]: "C=3" -> `, `spec.task.container.env[3]: "D=4" -> `,
			},
		},
		"a message that is an element goes": {
			func(s *api.Service) { s.Spec.Endpoint.Ports = s.Spec.Endpoint.Ports[:1] },
			[]string{
				`spec.endpoint.ports[1].name: "https" -> `, `spec.endpoint.ports[1].targetPort: 443 -> `,
				`spec.endpoint.ports[1].publishedPort: 8443 -> `,
			},
		},
		"an empty message comes": {
			func(s *api.Service) { s.Spec.Endpoint.Ports = append(s.Spec.Endpoint.Ports, &api.PortConfig{}) },
			[]string{`spec.endpoint.ports[2]:  -> {}`},
		},
		"another of several": {
			func(s *api.Service) { s.Spec.Mode = &api.ServiceSpec_Global{Global: &api.GlobalService{}} },
			[]string{`spec.replicated.replicas: "3" -> `, `spec.global:  -> {}`},
		},
		"a duration": {
			func(s *api.Service) {
				container(s).StopGracePeriod = &types.Duration{Seconds: 1, Nanos: 500000000}
			},
			[]string{`spec.task.container.stopGracePeriod: "10s" -> "1.500s"`},
		},
		"a duration goes, and a time comes": {
			func(s *api.Service) {
				container(s).StopGracePeriod = nil
				s.UpdateStatus = &api.UpdateStatus{StartedAt: &types.Timestamp{Seconds: 1}}
			},
			[]string{`spec.task.container.stopGracePeriod: "10s" -> `, `updateStatus.startedAt:  -> "1970-01-01T00:00:01Z"`},
		},
		"a time that there cannot be": {
			func(s *api.Service) {
				s.UpdateStatus = &api.UpdateStatus{StartedAt: &types.Timestamp{Seconds: 1 << 60}}
			},
			[]string{`updateStatus.startedAt:  -> {"seconds":"1152921504606846976"}`},
		},
		"a wrapped number": {
			func(s *api.Service) {
				s.Spec.Task.Resources = &api.ResourceRequirements{SwapBytes: &types.Int64Value{Value: -1}}
			},
			[]string{`spec.task.resources.swapBytes:  -> "-1"`},
		},
		"what is of a type that is not known here": {
			func(s *api.Service) {
				s.Spec.Task.Runtime = &api.TaskSpec_Generic{Generic: &api.GenericRuntimeSpec{
					Kind: "k", Payload: &types.Any{TypeUrl: "t/x", Value: []byte{0xff, 0xfe}},
				}}
			},
			[]string{
				`spec.task.container.image: "app:1" -> `, `spec.task.container.env[0]: "A=1" -> `,
				`spec.task.container.env[1]: "B=2" -> `, `spec.task.container.env[2]: "C=3" -> `,
				`spec.task.container.env[3]: "D=4" -> `, `spec.task.container.stopGracePeriod: "10s" -> `,
				`spec.task.generic.kind:  -> "k"`, `spec.task.generic.payload.typeUrl:  -> "t/x"`,
				`spec.task.generic.payload.value:  -> "//4="`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := service(nil), service(c.change)
			for range 3 { // gogo's maps come in another order each time
				got, err := d.Diff(before, after, before, after)
				if err != nil || !reflect.DeepEqual(told(got), c.want) {
					t.Fatalf("%v\n%s\nwant\n%s", err, strings.Join(told(got), "\n"), strings.Join(c.want, "\n"))
				}
			}
			back, err := d.Diff(after, before, after, before)
			if err != nil || len(back) != len(c.want) {
				t.Fatalf("back: %v, %v", told(back), err)
			}
			for _, f := range back {
				turned := fielddiff.Field{Path: f.Path, Old: f.New, New: f.Old}
				if !slices.Contains(c.want, told([]fielddiff.Field{turned})[0]) {
					t.Errorf("back: %v", f)
				}
			}
		})
	}
}

// Values are as apijson prints them, and so are whole messages.
func TestValuesAreProtobufJSON(t *testing.T) {
	all := files(t)
	d, converter := fielddiff.New(all), apijson.New(all)
	spec := api.TaskSpec{
		Runtime: &api.TaskSpec_Container{Container: &api.ContainerSpec{
			Image: "a\u2028<&>\x01\t", Command: []string{"x", "y\\"}, Labels: map[string]string{"b": "2", "a": "1"},
			StopGracePeriod: &types.Duration{Nanos: -1}, Healthcheck: &api.HealthConfig{Test: []string{"t"}},
			Mounts: []*api.Mount{{Target: "/x", Readonly: true, Type: api.Mount_VOLUME}},
		}},
		Resources: &api.ResourceRequirements{
			Limits: &api.Resources{NanoCPUs: math.MaxInt64, MemoryBytes: -5}, SwapBytes: &types.Int64Value{},
		},
		Restart: &api.RestartPolicy{Delay: &types.Duration{Seconds: 3}, MaxAttempts: 4},
	}
	fields, err := d.Diff(&api.Service{}, &api.Service{Spec: api.ServiceSpec{Task: spec}},
		&api.Service{}, &api.Service{Spec: api.ServiceSpec{Task: spec}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := converter.Marshal(&api.Service{Spec: api.ServiceSpec{Task: spec}})
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	if len(fields) < 12 {
		t.Errorf("only %v", told(fields))
	}
	for _, f := range fields {
		var got any
		if err := json.Unmarshal([]byte(f.New), &got); err != nil {
			t.Fatalf("%s: %q: %v", f.Path, f.New, err)
		}
		want := follow(tree, f.Path)
		if want == nil { // JSON leaves out what is false, 0 or the first of an enum
			want = map[string]any{"false": false, "0": 0.0}[f.New]
		}
		if want != nil && !reflect.DeepEqual(got, want) || want == nil && f.New != `"0"` && !strings.HasPrefix(f.New, `"`) {
			t.Errorf("%s is %s, apijson has %v", f.Path, f.New, want)
		}
	}
}

// follow goes down a path without quoted keys.
func follow(tree any, path string) any {
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		switch node := tree.(type) {
		case map[string]any:
			tree = node[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(node) {
				return nil
			}
			tree = node[i]
		default:
			return nil
		}
	}
	return tree
}

func TestDiffFails(t *testing.T) {
	d := fielddiff.New(files(t))
	for name, c := range map[string][2]fielddiff.Message{
		"two types":     {&api.Service{}, &api.Node{}},
		"unknown":       {&types.Struct{}, &types.Struct{}},
		"not UTF-8":     {&api.Service{}, &api.Service{ID: "\xff"}},
		"not a message": {notMessage{}, notMessage{}},
	} {
		if got, err := d.Diff(c[0], c[1], c[0], c[1]); err == nil || !strings.HasPrefix(err.Error(), "fielddiff: ") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

type notMessage struct{}

func (notMessage) Marshal() ([]byte, error) { return nil, nil }

func BenchmarkDiff(b *testing.B) {
	d := fielddiff.New(files(b))
	before, after := service(nil), service(func(s *api.Service) { container(s).Image = "app:2" })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Diff(before, after, before, after); err != nil {
			b.Fatal(err)
		}
	}
}
