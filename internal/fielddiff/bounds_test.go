package fielddiff_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/internal/apijson"
	"holdfast/internal/fielddiff"
)

// Where too many fields differ, what holds them is told as a whole, from the deepest up.
func TestTooMany(t *testing.T) {
	all := files(t)
	d, converter := fielddiff.New(all), apijson.New(all)
	labels := func(n int, value string) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprintf("l%05d", i)] = value
		}
		return m
	}
	for _, c := range []struct {
		labels, env int
		want        []string // paths, if they are few
		count       int
	}{
		{labels: 999, count: 1000},
		{labels: 1000, want: []string{"spec.annotations.labels", "spec.task.container"}},
		{labels: 400, env: 800, want: nil, count: 402},
	} {
		before := service(func(s *api.Service) { s.Spec.Annotations.Labels = labels(c.labels, "1") })
		after := service(func(s *api.Service) {
			s.Spec.Annotations.Labels = labels(c.labels, "2")
			container(s).Image = "app:2"
			for i := range c.env {
				container(s).Env = append(container(s).Env, fmt.Sprint("E", i))
			}
		})
		fields, err := d.Diff(before, after, before, after)
		if err != nil || len(fields) > fielddiff.MaxFields || len(fields) == 0 {
			t.Fatalf("%+v: %d fields, %v", c, len(fields), err)
		}
		if c.count > 0 && len(fields) != c.count {
			t.Errorf("%+v: %d fields", c, len(fields))
		}
		var paths []string
		for _, f := range fields {
			paths = append(paths, f.Path)
		}
		if c.want != nil && !slices.Equal(paths, c.want) {
			t.Errorf("%+v: %v", c, paths)
		}
	}
	// A whole part is protobuf's JSON too.
	before, after := service(nil), service(func(s *api.Service) { s.Spec.Annotations.Labels = labels(2000, "x") })
	fields, err := d.Diff(before, after, before, after)
	if err != nil || len(fields) != 1 || fields[0].Path != "spec.annotations.labels" {
		t.Fatalf("%v, %v", told(fields), err)
	}
	whole, err := converter.Marshal(&after.Spec.Annotations)
	if err != nil || !strings.HasSuffix(string(whole), `"labels":`+fields[0].New+"}") {
		t.Errorf("%v: it is %.200s\nwant %.200s", err, fields[0].New, whole)
	}
}

// What is not shown is told to differ, without a value, also where parts are told as a whole.
func TestSecrets(t *testing.T) {
	const canary = "canary"
	d := fielddiff.New(files(t))
	cluster := func(change func(*api.Cluster)) (full, shown *api.Cluster) {
		full = &api.Cluster{
			ID: "c", RootCA: api.RootCA{CAKey: []byte(canary + "1"), CACert: []byte("cert1"), CACertHash: "h"},
			UnlockKeys: []*api.EncryptionKey{{Key: []byte(canary)}},
		}
		change(full)
		shown = full.Copy()
		shown.RootCA.CAKey, shown.UnlockKeys, shown.Spec.CAConfig.SigningCAKey = nil, nil, nil
		return full, shown
	}
	for name, c := range map[string]struct {
		change func(*api.Cluster)
		want   []string
	}{
		"a key": {
			func(c *api.Cluster) { c.RootCA.CAKey = []byte(canary + "2") },
			[]string{"rootCa.caKey:  ->  secret"},
		},
		"a key and more": {
			func(c *api.Cluster) {
				c.RootCA.CAKey, c.RootCA.CACert = nil, []byte("cert2")
				c.UnlockKeys = append(c.UnlockKeys, &api.EncryptionKey{Key: []byte(canary + "3")})
			},
			[]string{
				"rootCa.caKey:  ->  secret", `rootCa.caCert: "Y2VydDE=" -> "Y2VydDI="`,
				"unlockKeys[1].key:  ->  secret",
			},
		},
		"a part that holds one comes": {
			func(c *api.Cluster) {
				c.Spec.CAConfig.SigningCAKey = []byte(canary)
				c.Spec.CAConfig.ForceRotate = 1
			},
			[]string{"spec.caConfig.signingCaKey:  ->  secret", `spec.caConfig.forceRotate: "0" -> "1"`},
		},
		"as a whole": {
			func(c *api.Cluster) {
				c.RootCA.CAKey = []byte(canary + "2")
				c.Spec.Annotations.Labels = map[string]string{}
				for i := range 2000 {
					c.Spec.Annotations.Labels[fmt.Sprint(i)] = "x"
				}
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, shownBefore := cluster(func(*api.Cluster) {})
			after, shownAfter := cluster(c.change)
			got, err := d.Diff(before, after, shownBefore, shownAfter)
			if err != nil || c.want != nil && !reflect.DeepEqual(told(got), c.want) {
				t.Fatalf("%v\n%s\nwant\n%s", err, strings.Join(told(got), "\n"), strings.Join(c.want, "\n"))
			}
			secret := false
			for _, f := range got {
				secret = secret || f.Secret
				for _, v := range []string{f.Old, f.New} {
					if strings.Contains(v, canary) || strings.Contains(v, "Y2FuYXJ5") {
						t.Errorf("%s tells %s", f.Path, v)
					}
				}
			}
			if !secret {
				t.Errorf("nothing is secret in %v", told(got))
			}
		})
	}
}
