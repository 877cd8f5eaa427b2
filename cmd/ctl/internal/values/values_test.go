package values_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/api"
	"holdfast/cmd/ctl/internal/values"
)

// check compares what a value was read as, or the error.
func check[T any](t *testing.T, in string, got T, err error, want T, wantErr string) {
	t.Helper()
	switch {
	case wantErr != "":
		if err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%q: error %v, want %q", in, err, wantErr)
		}
	case err != nil:
		t.Errorf("%q: %v", in, err)
	default:
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: -want +got\n%s", in, d)
		}
	}
}

func port(published, target uint32) *api.PortConfig {
	return &api.PortConfig{PublishedPort: published, TargetPort: target}
}

func TestParsePorts(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []*api.PortConfig
		err  string
	}{
		{in: "80", want: []*api.PortConfig{port(0, 80)}},
		{in: ":80", want: []*api.PortConfig{port(0, 80)}},
		{in: "8080:80", want: []*api.PortConfig{port(8080, 80)}},
		{in: "53:53/udp", want: []*api.PortConfig{{PublishedPort: 53, TargetPort: 53, Protocol: api.PortConfig_UDP}}},
		{in: "5:5/SCTP", want: []*api.PortConfig{{PublishedPort: 5, TargetPort: 5, Protocol: api.PortConfig_SCTP}}},
		{in: "81-82:1-2", want: []*api.PortConfig{port(81, 1), port(82, 2)}},
		{in: "1-2", want: []*api.PortConfig{port(0, 1), port(0, 2)}},
		{
			in: "target=80,published=8080,protocol=udp,mode=host,name=web",
			want: []*api.PortConfig{{
				Name: "web", Protocol: api.PortConfig_UDP, TargetPort: 80, PublishedPort: 8080, PublishMode: api.PortConfig_HOST,
			}},
		},
		{in: "target=80", want: []*api.PortConfig{port(0, 80)}},
		{in: "", err: "not a port"},
		{in: "0:80", err: "not a port"},
		{in: "65536:80", err: "not a port"},
		{in: "80/icmp", err: "none of tcp, udp, sctp"},
		{in: "1-3:1-2", err: "differ in length"},
		{in: "1:1-2", err: "differ in length"},
		{in: "3-1:3-1", err: "ends before it begins"},
		{in: "127.0.0.1:80:80", err: "leave the address out"},
		{in: "[::1]:80:80", err: "leave the address out"},
		{in: "published=80", err: "has no target"},
		{in: "target=80,mode=both", err: "none of ingress, host"},
		{in: "target=80,colour=red", err: "none of published"},
		{in: "target=80,host", err: "is not KEY=VALUE"},
	} {
		got, err := values.ParsePorts(c.in)
		check(t, c.in, got, err, c.want, c.err)
	}
}

func TestParsePortMatcher(t *testing.T) {
	for in, want := range map[string][]bool{
		"80":      {true, true, false},
		"8080:80": {true, false, false},
		"80/udp":  {false, false, true},
	} {
		matches, err := values.ParsePortMatcher(in)
		if err != nil {
			t.Fatal(err)
		}
		got := []bool{
			matches(port(8080, 80)), matches(port(9090, 80)),
			matches(&api.PortConfig{TargetPort: 80, Protocol: api.PortConfig_UDP}),
		}
		check(t, in, got, nil, want, "")
	}
}

func TestParseMount(t *testing.T) {
	for _, c := range []struct {
		in   string
		want *api.Mount
		err  string
	}{
		{in: "source=v,target=/v", want: &api.Mount{Type: api.Mount_VOLUME, Source: "v", Target: "/v"}},
		{in: "type=volume,dst=/v,ro", want: &api.Mount{Type: api.Mount_VOLUME, Target: "/v", Readonly: true}},
		{
			in: "type=bind,src=/a,destination=/b,readonly=false,bind-propagation=rslave,bind-recursive=disabled,consistency=cached",
			want: &api.Mount{
				Type: api.Mount_BIND, Source: "/a", Target: "/b", Consistency: api.Mount_CACHED,
				BindOptions: &api.Mount_BindOptions{Propagation: api.Mount_BindOptions_RSLAVE, Nonrecursive: true},
			},
		},
		{
			in: `source=v,target=/v,volume-nocopy,volume-driver=nfs,"volume-opt=o=addr=1,rw",volume-opt=type=nfs,volume-label=a=b,volume-subpath=s`,
			want: &api.Mount{
				Type: api.Mount_VOLUME, Source: "v", Target: "/v",
				VolumeOptions: &api.Mount_VolumeOptions{
					Nocopy: true, Labels: map[string]string{"a": "b"}, Subpath: "s",
					DriverConfig: &api.Driver{Name: "nfs", Options: map[string]string{"o": "addr=1,rw", "type": "nfs"}},
				},
			},
		},
		{
			in: "type=tmpfs,target=/t,tmpfs-size=1m,tmpfs-mode=1777",
			want: &api.Mount{
				Type: api.Mount_TMPFS, Target: "/t",
				TmpfsOptions: &api.Mount_TmpfsOptions{SizeBytes: 1 << 20, Mode: 0o1777},
			},
		},
		{in: "target", err: "is not KEY=VALUE"},
		{in: "source=v", err: "has no target"},
		{in: "type=bind,target=/v", err: "needs a source"},
		{in: "type=tmpfs,source=v,target=/v", err: "has no source"},
		{in: "type=floppy,target=/v", err: "none of bind"},
		{in: "target=/v,tmpfs-size=1m", err: "is no tmpfs"},
		{in: "target=/v,bind-propagation=shared", err: "is no bind"},
		{in: "type=bind,source=/v,target=/v,volume-nocopy", err: "is no volume"},
		{in: "type=tmpfs,target=/v,tmpfs-mode=9", err: "want permissions"},
		{in: "target=/v,readonly=maybe", err: "want true or false"},
		{in: "target=/v,volume-colour=red", err: "is no key"},
		{in: `target="/v`, err: "KEY=VALUE"},
	} {
		got, err := values.ParseMount(c.in)
		check(t, c.in, got, err, c.want, c.err)
	}
}

func TestParseReference(t *testing.T) {
	file := func(source, name, uid, gid string, mode uint32) values.Reference {
		return values.Reference{Source: source, File: api.FileTarget{Name: name, UID: uid, GID: gid, Mode: mode}}
	}
	for _, c := range []struct {
		in, root string
		want     values.Reference
		err      string
	}{
		{in: "key", want: file("key", "key", "0", "0", 0o444)},
		{in: "conf", root: "/", want: file("conf", "/conf", "0", "0", 0o444)},
		{in: "source=key,target=a.txt,uid=1,gid=2,mode=0400", want: file("key", "a.txt", "1", "2", 0o400)},
		{in: "src=conf", root: "/", want: file("conf", "/conf", "0", "0", 0o444)},
		{in: "src=conf,target=/etc/c", root: "/", want: file("conf", "/etc/c", "0", "0", 0o444)},
		{in: "", err: "no source"},
		{in: "target=x", err: "no source"},
		{in: "source=x,mode=999", err: "want permissions"},
		{in: "source=x,colour=red", err: "none of source"},
	} {
		got, err := values.ParseReference(c.in, c.root)
		check(t, c.in, got, err, c.want, c.err)
	}
}

func TestParseNetwork(t *testing.T) {
	for _, c := range []struct {
		in   string
		want *api.NetworkAttachmentConfig
		err  string
	}{
		{in: "back", want: &api.NetworkAttachmentConfig{Target: "back"}},
		{
			in: "name=back,alias=a,alias=b,driver-opt=x=y",
			want: &api.NetworkAttachmentConfig{
				Target: "back", Aliases: []string{"a", "b"}, DriverAttachmentOpts: map[string]string{"x": "y"},
			},
		},
		{in: "", err: "no name"},
		{in: "alias=a", err: "no name"},
		{in: "name=a,colour=red", err: "none of name"},
	} {
		got, err := values.ParseNetwork(c.in)
		check(t, c.in, got, err, c.want, c.err)
	}
}

func TestAmounts(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
		err  string
	}{
		{"1", 1_000_000_000, ""},
		{"0.5", 500_000_000, ""},
		{".25", 250_000_000, ""},
		{"0.0000000001", 0, "finer"},
		{"-1", 0, "not a number"},
		{"1e3", 0, "not a number"},
		{"1/2", 0, "not a number"},
		{"", 0, "not a number"},
		{"99999999999", 0, "too large"},
	} {
		got, err := values.ParseCPUs(c.in)
		check(t, c.in, got, err, c.want, c.err)
	}
	for _, c := range []struct {
		in   string
		want int64
		err  string
	}{
		{"0", 0, ""},
		{"10b", 10, ""},
		{"1k", 1 << 10, ""},
		{"1.5m", 3 << 19, ""},
		{"2GB", 2 << 30, ""},
		{"2 GiB", 2 << 30, ""},
		{"1t", 1 << 40, ""},
		{"lots", 0, "not an amount"},
		{"1x", 0, "not an amount"},
		{"-1m", 0, "not an amount"},
		{"1e3", 0, "not an amount"},
		{"9999999999g", 0, "too large"},
	} {
		got, err := values.ParseBytes(c.in)
		check(t, c.in, got, err, c.want, c.err)
	}
}

func TestParseEnv(t *testing.T) {
	lookup := func(k string) (string, bool) { return "from here", k == "HERE" }
	got, err := values.ParseEnv([]string{"A=1", "B=", "HERE", "THERE", "HERE=x", "C=a=b"}, lookup)
	check(t, "env", got, err, []string{"A=1", "B=", "HERE=from here", "THERE", "HERE=x", "C=a=b"}, "")
	_, err = values.ParseEnv([]string{"=1"}, lookup)
	check(t, "=1", nil, err, []string(nil), "neither KEY")
}

func TestSplitWords(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
		err  string
	}{
		{in: "", want: nil},
		{in: "  a  b\tc\n", want: []string{"a", "b", "c"}},
		{in: `a "b c" 'd "e' f\ g`, want: []string{"a", "b c", `d "e`, "f g"}},
		{in: `x"y z"w ''`, want: []string{"xy zw", ""}},
		{in: `"a\"b" "a\nb" '\'`, want: []string{`a"b`, `a\nb`, `\`}},
		{in: `"a`, err: "within a quotation"},
		{in: `a\`, err: "within a quotation"},
	} {
		got, err := values.SplitWords(c.in)
		check(t, c.in, got, err, c.want, c.err)
	}
}

// What people write must never crash ctl.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"8080:80/tcp", "type=bind,src=/a,dst=/b", "a=b,", `"`, "1-2:3-4", "[", "1.5g"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) {
		values.ParsePorts(s)          //nolint:errcheck // only panics count
		values.ParseMount(s)          //nolint:errcheck // only panics count
		values.ParseReference(s, "/") //nolint:errcheck // only panics count
		values.ParseNetwork(s)        //nolint:errcheck // only panics count
		values.ParseCPUs(s)           //nolint:errcheck // only panics count
		values.ParseBytes(s)          //nolint:errcheck // only panics count
		values.SplitWords(s)          //nolint:errcheck // only panics count
	})
}
