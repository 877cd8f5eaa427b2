package codec_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gogo/protobuf/proto"
	"github.com/gogo/protobuf/types"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec to compare with
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/codec"
)

func service(name string) *api.Service {
	return &api.Service{
		ID:   "0123456789abcdefghijklmno",
		Meta: api.Meta{Version: api.Version{Index: 7}, CreatedAt: &types.Timestamp{Seconds: 1}},
		Spec: api.ServiceSpec{
			Annotations: api.Annotations{Name: name, Labels: map[string]string{"a": "b", "c": "d"}},
			Task: api.TaskSpec{Runtime: &api.TaskSpec_Container{
				Container: &api.ContainerSpec{Image: "nginx", Args: []string{"a", "b"}},
			}},
			Mode: &api.ServiceSpec_Replicated{Replicated: &api.ReplicatedService{Replicas: 3}},
		},
	}
}

func TestRoundTrip(t *testing.T) {
	c := codec.New()
	if c.Name() != "proto" {
		t.Errorf("Name is %q", c.Name())
	}
	// The longer name takes the buffer from the pool.
	for _, name := range []string{"web", strings.Repeat("x", 1<<16)} {
		want := service(name)
		data, err := c.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data.Materialize(), plain) {
			t.Error("not what gogo's Marshal gives")
		}
		got := service("what was there before must go")
		if err := c.Unmarshal(data, got); err != nil {
			t.Fatal(err)
		}
		data.Free()
		if !proto.Equal(got, want) {
			t.Errorf("got %.200v, want %.200v", got, want)
		}
	}
}

func TestReceivedIsCopied(t *testing.T) {
	c := codec.New()
	in := &api.Secret{ID: "id", Spec: api.SecretSpec{Data: []byte("secret")}, XXX_unrecognized: []byte{0xb8, 0x7f, 1}}
	encoded, err := in.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var got api.Secret
	var raw codec.Raw
	for _, v := range []any{&got, &raw} {
		if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(encoded)}, v); err != nil {
			t.Fatal(err)
		}
	}
	want := bytes.Clone(encoded)
	clear(encoded)
	if !proto.Equal(&got, in) || !bytes.Equal(raw, want) {
		t.Error("received values changed with the buffer they came in")
	}
}

func TestEmpty(t *testing.T) {
	c := codec.New()
	for _, v := range []any{&api.RemoveTaskResponse{}, (*api.Service)(nil), codec.Raw(nil), &codec.Raw{}} {
		data, err := c.Marshal(v)
		if err != nil || data.Len() != 0 {
			t.Errorf("%T: %d bytes, %v", v, data.Len(), err)
		}
		if err := c.Unmarshal(data, new(api.RemoveTaskResponse)); err != nil {
			t.Errorf("%T: %v", v, err)
		}
	}
}

func TestFallback(t *testing.T) {
	c := codec.New()
	data, err := c.Marshal(&healthpb.HealthCheckRequest{Service: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var got healthpb.HealthCheckRequest
	if err := c.Unmarshal(data, &got); err != nil || got.GetService() != "x" {
		t.Errorf("got %v, %v", &got, err)
	}
	if _, err := c.Marshal("no message"); err == nil {
		t.Error("a string was marshalled")
	}
	if err := c.Unmarshal(data, new(string)); err == nil {
		t.Error("a string was unmarshalled")
	}
}

func TestRawMarshalsAsIs(t *testing.T) {
	c := codec.New()
	raw := codec.Raw("not even protobuf")
	for _, v := range []any{raw, &raw} {
		data, err := c.Marshal(v)
		if err != nil || string(data.Materialize()) != string(raw) {
			t.Errorf("%T: %q, %v", v, data.Materialize(), err)
		}
	}
}

func TestUnmarshalError(t *testing.T) {
	err := codec.New().Unmarshal(mem.BufferSlice{mem.SliceBuffer{0x0a, 0xff}}, new(api.Service))
	if err == nil || !strings.Contains(err.Error(), "*api.Service") {
		t.Errorf("error is %v", err)
	}
}

// FuzzUnmarshal looks for input on which decoding panics, or which decodes to a message that
// does not encode to the size it says.
func FuzzUnmarshal(f *testing.F) {
	c := codec.New()
	seed, err := service("web").Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte{0x0a, 0x00, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range []proto.Message{
			new(api.Service), new(api.Node), new(api.Cluster), new(api.StoreAction),
			new(holdfast.Entry), new(holdfast.TxnRequest), new(holdfast.SnapshotHeader),
		} {
			if c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, v) != nil {
				continue
			}
			encoded, err := c.Marshal(v)
			if err != nil {
				t.Fatalf("%T: %v", v, err)
			}
			again := proto.Clone(v)
			if err := c.Unmarshal(encoded, again); err != nil {
				t.Fatalf("%T: %v", v, err)
			}
			encoded.Free()
		}
	})
}

func BenchmarkCodec(b *testing.B) {
	for name, c := range map[string]encoding.CodecV2{"gogo": codec.New(), "default": encoding.GetCodecV2("proto")} {
		b.Run(name, func(b *testing.B) {
			msg, got := service(strings.Repeat("x", 2000)), new(api.Service)
			b.ReportAllocs()
			for b.Loop() {
				data, err := c.Marshal(msg)
				if err != nil {
					b.Fatal(err)
				}
				if err := c.Unmarshal(data, got); err != nil {
					b.Fatal(err)
				}
				data.Free()
			}
		})
	}
}
