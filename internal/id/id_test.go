package id_test

import (
	"strings"
	"testing"

	"holdfast/internal/id"
)

func TestNewIsValidAndDiffers(t *testing.T) {
	seen := make(map[string]bool)
	for range 10_000 {
		s := id.New()
		if !id.Valid(s) {
			t.Fatalf("%q is not valid", s)
		}
		if seen[s] {
			t.Fatalf("%q came twice", s)
		}
		seen[s] = true
	}
}

func TestValid(t *testing.T) {
	full := strings.Repeat("a", id.Length)
	for _, c := range []struct {
		in            string
		valid, prefix bool
	}{
		{"", false, false},
		{"abc123", false, true},
		{"Abc", false, false},
		{"a-b", false, false},
		{full, true, true},
		{full + "a", false, false},
		{strings.ToUpper(full), false, false},
	} {
		if got := id.Valid(c.in); got != c.valid {
			t.Errorf("Valid(%q) = %v", c.in, got)
		}
		if got := id.ValidPrefix(c.in); got != c.prefix {
			t.Errorf("ValidPrefix(%q) = %v", c.in, got)
		}
	}
}
