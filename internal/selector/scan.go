package selector

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/internal/errkind"
)

// token is a piece of the text.
type token struct {
	kind tokenKind
	text string // of a quoted one, what it stands for
	at   int    // byte where it begins
}

type tokenKind int

const (
	end tokenKind = iota
	word
	quoted
	sign // one of , ( ) = == != !
)

func (t token) is(s string) bool     { return t.kind == sign && t.text == s }
func (t token) isWord(s string) bool { return t.kind == word && t.text == s }

// String is for messages.
func (t token) String() string {
	if t.kind == end {
		return "the end"
	}
	return shown(t.text)
}

// shown makes s fit for a message: in quotes, and not too long.
func shown(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		s = string(r[:most-1]) + "…"
	}
	return fmt.Sprintf("%q", s)
}

// scanner cuts a text into tokens.
type scanner struct {
	text string
	pos  int // byte where the rest begins
}

// next returns the next token: after the last, end again and again.
func (s *scanner) next() (token, error) {
	rest := strings.TrimLeftFunc(s.text[s.pos:], unicode.IsSpace)
	s.pos = len(s.text) - len(rest)
	t := token{at: s.pos}
	if rest == "" {
		return t, nil
	}
	switch rest[0] {
	case '"':
		return s.quoted()
	case ',', '(', ')', '=', '!':
		t.kind, t.text = sign, rest[:1]
		if strings.HasPrefix(rest, "==") || strings.HasPrefix(rest, "!=") {
			t.text = rest[:2]
		}
	default:
		t.kind, t.text = word, rest
		if n := strings.IndexFunc(rest, endsWord); n >= 0 {
			t.text = rest[:n]
		}
	}
	s.pos += len(t.text)
	return t, s.valid(t)
}

// quoted reads the token that begins with the quote at pos.
func (s *scanner) quoted() (token, error) {
	t := token{kind: quoted, at: s.pos}
	var b strings.Builder
	for i := s.pos + 1; i < len(s.text); i++ {
		switch c := s.text[i]; c {
		case '"':
			s.pos = i + 1
			t.text = b.String()
			return t, s.valid(t)
		case '\\':
			if i++; i == len(s.text) {
				break // out of the switch: the loop ends, too
			}
			if s.text[i] != '"' && s.text[i] != '\\' {
				return t, s.wrong(i, `expected " or \ after \ between quotes`)
			}
			b.WriteByte(s.text[i])
		default:
			b.WriteByte(c)
		}
	}
	return t, s.wrong(len(s.text), `expected " to end what begins in column %d, found the end`, s.column(t.at))
}

// valid makes sure of the characters of a token, which ends at pos. Labels and fields are of
// UTF-8, so that nothing else would ever match.
func (s *scanner) valid(t token) error {
	for i, r := range s.text[t.at:s.pos] {
		if r != utf8.RuneError {
			continue
		}
		if _, size := utf8.DecodeRuneInString(s.text[t.at+i:]); size == 1 {
			return s.wrong(t.at+i, "expected UTF-8, found the byte 0x%02x", s.text[t.at+i])
		}
	}
	return nil
}

// endsWord tells whether r cannot be part of a word that has no quotes.
func endsWord(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`,()=!"`, r) }

// column counts characters, from 1.
func (s *scanner) column(at int) int { return utf8.RuneCountInString(s.text[:at]) + 1 }

// wrong makes an error that points at a byte of the text.
func (s *scanner) wrong(at int, format string, args ...any) *errkind.Error {
	return errkind.Field(path, "column %d: %s", s.column(at), fmt.Sprintf(format, args...))
}
