package selector_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"holdfast/internal/errkind"
	"holdfast/internal/selector"
)

func TestCanonicalText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{" \t\n", ""},
		{"a", "a"},
		{"!a", "!a"},
		{" ! a ", "!a"},
		{"a=b", "a=b"},
		{"a==b", "a=b"},
		{" a\t= b ", "a=b"},
		{"a!=b", "a!=b"},
		{"a != b", "a!=b"},
		{"a in (b)", "a=b"},
		{"a notin(b,b)", "a!=b"},
		{"a in ( c , b,c )", "a in (b,c)"},
		{"a notin(c,b)", "a notin (b,c)"},
		{`"a"in(c,b)`, "a in (b,c)"},
		{"z,a,!b", "a,!b,z"},
		{"a,b,a", "a,b"},
		{"a=1,a==1,a in (1)", "a=1"},
		{"a!=1,a=1,!a,a", "a,!a,a=1,a!=1"},
		{"in in (in,notin)", "in in (in,notin)"},
		{"in,notin=in", "in,notin=in"},
		{`a=""`, `a=""`},
		{`a=" b"`, `a=" b"`},
		{`a="b"`, "a=b"},
		{`"a,b"="c=d"`, `"a,b"="c=d"`},
		{`a="\"\\"`, `a="\"\\"`},
		{`a=b\c`, `a=b\c`},
		{`a="b\\c"`, `a=b\c`},
		{`a=.b`, "a=.b"},
		{".name=web", ".name=web"},
		{".spec.task.image!=x:1", ".spec.task.image!=x:1"},
		{"com.example/tier=front-end", "com.example/tier=front-end"},
		{"é=日本", "é=日本"},
		{"a=\"\u00a0\"", "a=\"\u00a0\""},
		{"a\u00a0=\u2003b", "a=b"},
		{"a=\ufffd", "a=\ufffd"},
	} {
		s, err := selector.Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := s.String(); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
		if s.Empty() != (c.want == "") {
			t.Errorf("%q: Empty is %v", c.text, s.Empty())
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{",", `column 1: expected a key or "!", found ","`},
		{"a,", `column 3: expected a key or "!", found the end`},
		{"a,,b", `column 3: expected a key or "!", found ","`},
		{"=a", `column 1: expected a key or "!", found "="`},
		{"!=a", `column 1: expected a key or "!", found "!="`},
		{"!", "column 2: expected a key, found the end"},
		{"!!a", `column 2: expected a key, found "!"`},
		{"!a=b", `column 3: expected "," or the end, found "="`},
		{`""=a`, `column 1: expected a key that is not empty, found ""`},
		{"a b", `column 3: expected one of = == != in notin, or "," or the end, found "b"`},
		{`a "in" (b)`, `column 3: expected one of = == != in notin, or "," or the end, found "in"`},
		{"a In (b)", `column 3: expected one of = == != in notin, or "," or the end, found "In"`},
		{"a)", `column 2: expected one of = == != in notin, or "," or the end, found ")"`},
		{"a=", "column 3: expected a value, found the end"},
		{"a=,b", `column 3: expected a value, found ","`},
		{"a= =b", `column 4: expected a value, found "="`},
		{"a===b", `column 4: expected a value, found "="`},
		{"a!==b", `column 4: expected a value, found "="`},
		{"a! =b", `column 2: expected one of = == != in notin, or "," or the end, found "!"`},
		{"a=b c", `column 5: expected "," or the end, found "c"`},
		{"a=b=c", `column 4: expected "," or the end, found "="`},
		{`a=b"c"`, `column 4: expected "," or the end, found "c"`},
		{"a in", `column 5: expected "(", found the end`},
		{"a in b", `column 6: expected "(", found "b"`},
		{"a in ()", `column 7: expected a value, found ")"`},
		{"a in (b,)", `column 9: expected a value, found ")"`},
		{"a in (b", `column 8: expected "," or ")", found the end`},
		{"a in (b c)", `column 9: expected "," or ")", found "c"`},
		{"a notin (b)c", `column 12: expected "," or the end, found "c"`},
		{"é=日本 x", `column 6: expected "," or the end, found "x"`},
		{`a="b`, `column 5: expected " to end what begins in column 3, found the end`},
		{`"`, `column 2: expected " to end what begins in column 1, found the end`},
		{`!"`, `column 3: expected " to end what begins in column 2, found the end`},
		{`a,"`, `column 4: expected " to end what begins in column 3, found the end`},
		{`a in "`, `column 7: expected " to end what begins in column 6, found the end`},
		{`a in ("`, `column 8: expected " to end what begins in column 7, found the end`},
		{`a in (b,"`, `column 10: expected " to end what begins in column 9, found the end`},
		{`a="b\`, `column 6: expected " to end what begins in column 3, found the end`},
		{`a="b\n"`, `column 6: expected " or \ after \ between quotes`},
		{"a=b\xff", "column 4: expected UTF-8, found the byte 0xff"},
		{"é=\"\xc3\"", "column 4: expected UTF-8, found the byte 0xc3"},
		{".=a", `column 1: expected the name of a field after its dot, found "."`},
		{`a,".name"=b`, "column 3: a quoted key must not begin with a dot"},
		{
			"a " + strings.Repeat("é", 50),
			`column 3: expected one of = == != in notin, or "," or the end, found "` + strings.Repeat("é", 39) + `…"`,
		},
	} {
		s, err := selector.Parse(c.text)
		e, ok := errors.AsType[*errkind.Error](err)
		if !ok {
			t.Errorf("%q: got %q, %v; want %s", c.text, s, err, c.want)
			continue
		}
		if e.Kind != errkind.Invalid || e.Field != "selector" || e.Msg != c.want {
			t.Errorf("%q: got %d, %s: %s\nwant %s", c.text, e.Kind, e.Field, e.Msg, c.want)
		}
	}
}

func TestLimits(t *testing.T) {
	numbers := func(n int) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf("%02d", i)
		}
		return strings.Join(parts, ",")
	}
	longIn := "a in(b,c),d=" + strings.Repeat("x", 4096-len("a in(b,c),d="))
	for _, c := range []struct{ name, text, max, msg string }{
		{"text", "a=" + strings.Repeat("x", 4094), "", ""},
		{"text", "a=" + strings.Repeat("x", 4095), "4 KiB", "text of 4097 bytes is over the limit of 4 KiB"},
		{"blanks", strings.Repeat(" ", 4097), "4 KiB", "text of 4097 bytes is over the limit of 4 KiB"},
		{"canonical", longIn, "4 KiB", "canonical text of 4097 bytes is over the limit of 4 KiB"},
		{"requirements", numbers(32), "", ""},
		{"requirements", numbers(33), "32 requirements", "column 97: more than 32 requirements"},
		{"values", "k in (" + numbers(64) + ")", "", ""},
		{"values", "k in (" + numbers(65) + ")", "64 values in one set", "column 199: more than 64 values in one set"},
	} {
		_, err := selector.Parse(c.text)
		if c.msg == "" {
			if err != nil {
				t.Errorf("%s: at the limit: %v", c.name, err)
			}
			continue
		}
		e, ok := errors.AsType[*errkind.Error](err)
		if !ok || e.Kind != errkind.Limit || e.Field != "selector" || e.Max != c.max || e.Msg != c.msg {
			t.Errorf("%s: got %+v, want %s", c.name, err, c.msg)
		}
	}
}
