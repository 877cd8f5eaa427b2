package stackapi

import (
	"reflect"
	"strings"
	"testing"

	"holdfast/api"
)

func TestDifferences(t *testing.T) {
	pools := func(configs ...*api.IPAMConfig) *api.NetworkSpec {
		return &api.NetworkSpec{IPAM: &api.IPAMOptions{Configs: configs}}
	}
	from := func(name string) *api.NetworkSpec {
		return &api.NetworkSpec{ConfigFrom: &api.NetworkSpec_Network{Network: name}}
	}
	for _, c := range []struct {
		name       string
		have, want *api.NetworkSpec
		said       string
	}{
		{"equal", pools(&api.IPAMConfig{Subnet: "a"}), pools(&api.IPAMConfig{Subnet: "a"}), ""},
		{
			"empty and nil", &api.NetworkSpec{Annotations: api.Annotations{Labels: map[string]string{}}},
			&api.NetworkSpec{}, "",
		},
		{
			"element", pools(&api.IPAMConfig{Subnet: "a"}), pools(&api.IPAMConfig{Subnet: "b"}),
			`ipam.configs[0].subnet is "a", wanted "b"`,
		},
		{"more elements", pools(), pools(&api.IPAMConfig{Subnet: "b"}), `ipam.configs[0] is not there, wanted {subnet:"b"}`},
		{"fewer elements", pools(&api.IPAMConfig{Subnet: "b"}), pools(), `ipam.configs[0] is {subnet:"b"}, wanted not there`},
		{"enum", pools(&api.IPAMConfig{}), pools(&api.IPAMConfig{Family: api.IPAMConfig_IPV6}), "ipam.configs[0].family is UNKNOWN, wanted IPV6"},
		{"oneof", from("a"), from("b"), `network is "a", wanted "b"`},
		{"no oneof", &api.NetworkSpec{}, from("b"), "config_from is not there, wanted {&{b}}"},
		{
			"unknown fields", &api.NetworkSpec{XXX_unrecognized: []byte{1, 2}}, &api.NetworkSpec{},
			"XXX_unrecognized is 2 bytes, wanted 0 bytes",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said []string
			for _, d := range differences(reflect.ValueOf(c.have), reflect.ValueOf(c.want)) {
				said = append(said, d.String())
			}
			if got := strings.Join(said, "; "); got != c.said {
				t.Errorf("got %q, want %q", got, c.said)
			}
			if (len(said) == 0) != c.have.Equal(c.want) {
				t.Error("does not agree with Equal")
			}
		})
	}
}

func TestDifferencesAreBounded(t *testing.T) {
	labels := map[string]string{}
	for _, r := range "abcdefghijklmnop" {
		labels[string(r)] = strings.Repeat("long", 100)
	}
	found := differences(reflect.ValueOf(&api.NetworkSpec{}),
		reflect.ValueOf(&api.NetworkSpec{Annotations: api.Annotations{Labels: labels}}))
	if len(found) != maxDifferences || len(found[0].want) > 100 {
		t.Errorf("got %d of %d bytes", len(found), len(found[0].want))
	}
}
