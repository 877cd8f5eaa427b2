package compose

import (
	"errors"
	"fmt"
	"strings"

	"github.com/compose-spec/compose-go/v2/template"
)

// maxNesting bounds defaults within defaults: ${A:-${B:-…}}.
const maxNesting = 32

// Errors of a $ that cannot be read. They leave out the text around it, which may be a password.
var (
	errOpenBrace = errors.New("${ is not closed; a literal $ is written $$")
	errBadName   = errors.New("${ is not followed by a variable's name; a literal $ is written $$")
	errTooDeep   = fmt.Errorf("variables are nested more than %d deep", maxNesting)
)

// substitution replaces $VAR, ${VAR} and their forms with a default, as compose-go does, and
// tells which variables had neither a value nor a default. (compose-go only logs them.)
type substitution struct {
	unset func(variable string)
}

func (s *substitution) substitute(text string, get template.Mapping) (string, error) {
	return s.expand(text, get, 0)
}

func (s *substitution) expand(text string, get template.Mapping, depth int) (string, error) {
	if depth > maxNesting {
		return "", errTooDeep
	}
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		text = after
		switch n := nameLength(text); {
		case strings.HasPrefix(text, "$"):
			out.WriteByte('$')
			text = text[1:]
		case strings.HasPrefix(text, "{"):
			end := closingBrace(text)
			if end < 0 {
				return "", errOpenBrace
			}
			value, err := s.braced(text[1:end], get, depth)
			if err != nil {
				return "", err
			}
			out.WriteString(value)
			text = text[end+1:]
		case n > 0:
			out.WriteString(s.value(text[:n], get))
			text = text[n:]
		default: // a $ before anything else stands for itself
			out.WriteByte('$')
		}
	}
}

// braced gives the value of what stands between ${ and }.
func (s *substitution) braced(body string, get template.Mapping, depth int) (string, error) {
	n := nameLength(body)
	if n == 0 {
		return "", errBadName
	}
	name, rest := body[:n], body[n:]
	if rest == "" {
		return s.value(name, get), nil
	}
	rest, notEmpty := strings.CutPrefix(rest, ":")
	if rest == "" || !strings.Contains("-+?", rest[:1]) {
		return "", errBadName
	}
	operator, word := rest[0], rest[1:]
	value, present := get(name)
	present = present && (value != "" || !notEmpty)
	switch {
	case operator == '+' && !present:
		return "", nil
	case operator != '+' && present:
		return value, nil
	}
	word, err := s.expand(word, get, depth+1)
	if err != nil {
		return "", err
	}
	if operator == '?' {
		return "", &template.MissingRequiredError{Variable: name, Reason: word}
	}
	return word, nil
}

func (s *substitution) value(name string, get template.Mapping) string {
	value, ok := get(name)
	if !ok {
		s.unset(name)
	}
	return value
}

// nameLength is the length of the variable's name that text begins with, or 0.
func nameLength(text string) int {
	for i, c := range []byte(text) {
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(text)
}

// closingBrace is where the brace that text begins with is closed, or -1.
func closingBrace(text string) int {
	open := 0
	for i, c := range []byte(text) {
		switch c {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return -1
}
