package stack

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
)

// request makes one with secrets and configs of so many bytes.
func request(secrets, configs []int) *holdfast.DeployRequest {
	r := &holdfast.DeployRequest{Name: "s"}
	for i, n := range secrets {
		s := api.SecretSpec{Annotations: api.Annotations{Name: fmt.Sprint("s", i)}, Data: make([]byte, n)}
		if n == 0 {
			s.Driver = &api.Driver{Name: "vault"}
		}
		r.Secrets = append(r.Secrets, s)
	}
	for i, n := range configs {
		r.Configs = append(r.Configs, api.ConfigSpec{Annotations: api.Annotations{Name: fmt.Sprint("c", i)}, Data: make([]byte, n)})
	}
	return r
}

// TestParts: each object is in one part, in order, and no part is too large.
func TestParts(t *testing.T) {
	same := func(n, size int) []int {
		all := make([]int, n)
		for i := range all {
			all[i] = size
		}
		return all
	}
	for _, test := range []struct {
		name             string
		secrets, configs []int
		want             string // secrets+configs of each part
	}{
		{"none", nil, nil, ""},
		{"of a driver", []int{0, 1, 0}, nil, "1+0"},
		{"500", same(499, 1), same(1, 1), "499+1"},
		{"501", same(1, 1), same(500, 1), "1+499 0+1"},
		{"1500", same(600, 1), same(900, 1), "500+0 100+400 0+500"},
		{"large ones", same(7, 500_000), same(7, 1_000_000), "6+0 1+2 0+3 0+2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := request(test.secrets, test.configs)
			var got, names []string
			for _, p := range parts(r) {
				got = append(got, fmt.Sprintf("%d+%d", len(p.Secrets), len(p.Configs)))
				if p.Name != "s" || p.Size() > maxPart+maxPart/100 || len(p.Secrets)+len(p.Configs) > maxObjects {
					t.Errorf("%s: %d bytes", p.Name, p.Size())
				}
				for i := range p.Secrets {
					names = append(names, p.Secrets[i].Annotations.Name)
				}
				for i := range p.Configs {
					names = append(names, p.Configs[i].Annotations.Name)
				}
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("parts %s, want %s", text, test.want)
			}
			var want []string
			for i := range r.Secrets {
				if r.Secrets[i].Driver == nil {
					want = append(want, r.Secrets[i].Annotations.Name)
				}
			}
			for i := range r.Configs {
				want = append(want, r.Configs[i].Annotations.Name)
			}
			if a, b := strings.Join(names, " "), strings.Join(want, " "); a != b {
				t.Errorf("objects %s, want %s", a, b)
			}
		})
	}
}

// TestNote: a manager that does not name what it stored must not be believed.
func TestNote(t *testing.T) {
	names := map[string]string{}
	if err := note(names, "secret", "a", map[string]string{"b": "b-1"}); err == nil || !strings.Contains(err.Error(), "secret a: ") {
		t.Errorf("%v", err)
	}
	if err := note(names, "secret", "b", map[string]string{"b": "b-1"}); err != nil || names["b"] != "b-1" {
		t.Errorf("%v, %v", err, names)
	}
}
