package token_test

import (
	"testing"

	"holdfast/internal/id"
	"holdfast/internal/token"
)

func TestTokenNamesItsCluster(t *testing.T) {
	good := token.Format("cluster1", id.New())
	if err := token.Of("cluster1", good); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "SWMTKN-1-", "SWMTKN-1-x", good[1:], token.Format("cluster2", id.New())} {
		if err := token.Of("cluster1", bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestEqual(t *testing.T) {
	if !token.Equal("a", "a") || token.Equal("a", "b") || token.Equal("", "") || token.Equal("a", "ab") {
		t.Error("wrong answer")
	}
}
