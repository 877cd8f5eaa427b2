package apijson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gogo/protobuf/proto"
	"github.com/gogo/protobuf/types"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/apijson"
	"holdfast/internal/descriptors"
)

func converter(t testing.TB) apijson.Converter {
	t.Helper()
	files, err := descriptors.New()
	if err != nil {
		t.Fatal(err)
	}
	return apijson.New(files)
}

func service() *api.Service {
	return &api.Service{
		ID: "0123456789abcdefghijklmno",
		Meta: api.Meta{
			Version:   api.Version{Index: 1 << 60},
			CreatedAt: &types.Timestamp{Seconds: 1700000000, Nanos: 5000000},
		},
		Spec: api.ServiceSpec{
			Annotations: api.Annotations{Name: "web", Labels: map[string]string{"b": "<2>", "a": "1"}},
			Task: api.TaskSpec{
				Runtime: &api.TaskSpec_Container{Container: &api.ContainerSpec{
					Image: "nginx", StopGracePeriod: &types.Duration{Seconds: 1, Nanos: 500000000},
				}},
				Resources: &api.ResourceRequirements{SwapBytes: &types.Int64Value{Value: -1}},
			},
			Mode: &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: 3}},
			Endpoint: &api.EndpointSpec{Ports: []*api.PortConfig{
				{Protocol: api.PortConfig_UDP, TargetPort: 53},
			}},
		},
	}
}

const want = `{
  "id": "0123456789abcdefghijklmno",
  "meta": {
    "version": {
      "index": "1152921504606846976"
    },
    "createdAt": "2023-11-14T22:13:20.005Z",
    "createdVersion": {},
    "specVersion": {}
  },
  "spec": {
    "annotations": {
      "name": "web",
      "labels": {
        "a": "1",
        "b": "<2>"
      }
    },
    "task": {
      "container": {
        "image": "nginx",
        "stopGracePeriod": "1.500s"
      },
      "resources": {
        "swapBytes": "-1"
      }
    },
    "replicated": {
      "replicas": "3"
    },
    "endpoint": {
      "ports": [
        {
          "protocol": "UDP",
          "targetPort": 53
        }
      ]
    }
  }
}`

func TestMarshalIndent(t *testing.T) {
	c := converter(t)
	for range 10 { // protojson's form differs between builds, gogo's maps between calls
		got, err := c.MarshalIndent(service())
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Fatalf("got %s\nwant %s", got, want)
		}
	}
}

func TestMarshal(t *testing.T) {
	got, err := converter(t).Marshal(service())
	if err != nil {
		t.Fatal(err)
	}
	var tight bytes.Buffer
	if err := json.Compact(&tight, []byte(want)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, tight.Bytes()) {
		t.Errorf("got %s, want %s", got, tight.Bytes())
	}
}

func TestUnmarshal(t *testing.T) {
	c := converter(t)
	got := &api.Service{ID: "goes", PendingDelete: true}
	if err := c.Unmarshal([]byte(want), got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, service()) {
		t.Errorf("got %v", got)
	}

	for _, bad := range []string{
		``, `[]`, `{"id": 1}`, `{"noSuchField": 1}`, `{"id": "a", "id": "b"}`, `{} {}`,
		`{"meta": {"createdAt": "yesterday"}}`,
	} {
		kept := service()
		err := c.Unmarshal([]byte(bad), kept)
		if err == nil || !strings.HasPrefix(err.Error(), "apijson: ") {
			t.Errorf("%s: error is %v", bad, err)
		}
		if !proto.Equal(kept, service()) {
			t.Errorf("%s: the message changed", bad)
		}
	}
}

func TestOtherPackages(t *testing.T) {
	c := converter(t)
	object := &holdfast.Object{Target: &holdfast.Object_Secret{Secret: &api.Secret{
		Spec: api.SecretSpec{Data: []byte{0xff, 0xfe}},
	}}}
	got, err := c.Marshal(object)
	if err != nil || !strings.Contains(string(got), `"data":"//4="`) {
		t.Errorf("got %s, %v", got, err)
	}
	got, err = c.Marshal(&types.Timestamp{Seconds: 1})
	if err != nil || string(got) != `"1970-01-01T00:00:01Z"` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestMarshalErrors(t *testing.T) {
	c := converter(t)
	if _, err := c.Marshal(&types.Struct{}); err == nil {
		t.Error("a message that no file of ours knows was marshalled")
	}
	if got, err := c.Marshal(&api.Node{ID: "not \xff UTF-8"}); err == nil {
		t.Errorf("an invalid string was marshalled: %s", got)
	}
}
