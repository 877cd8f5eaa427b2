package selector

import (
	"fmt"

	"holdfast/internal/errkind"
)

// The limits.
const (
	maxText         = 4 << 10 // bytes
	maxRequirements = 32
	maxValues       = 64 // of one set
)

// path names what is wrong in errors.
const path = "selector"

const quoteHint = `put double quotes around what is empty or holds whitespace or one of ,()=!"`

// Parse reads a selector. Its error tells the column, in characters from 1, and what was
// expected there.
func Parse(text string) (Selector, error) {
	if len(text) > maxText {
		return Selector{}, tooLong("text", len(text))
	}
	p := parser{scanner: scanner{text: text}}
	requirements, err := p.requirements()
	if err != nil {
		return Selector{}, err
	}
	s := normal(requirements)
	// It may be longer than text by the spaces around "in", and must be good for Parse, too.
	if n := len(s.String()); n > maxText {
		return Selector{}, tooLong("canonical text", n)
	}
	return s, nil
}

func tooLong(what string, n int) error {
	return &errkind.Error{
		Kind: errkind.Limit, Field: path, Max: "4 KiB",
		Msg: fmt.Sprintf("%s of %d bytes is over the limit of 4 KiB", what, n),
	}
}

// parser has one method for each rule of the grammar. Each starts at the token t, and leaves
// the one after what it read there.
type parser struct {
	scanner
	t token
}

func (p *parser) requirements() ([]requirement, error) {
	var out []requirement
	if err := p.advance(); err != nil || p.t.kind == end {
		return nil, err
	}
	for {
		if len(out) == maxRequirements {
			return nil, p.tooMany(maxRequirements, "requirements")
		}
		r, err := p.requirement()
		if err != nil {
			return nil, err
		}
		out = append(out, r)
		switch {
		case p.t.kind == end:
			return out, nil
		case !p.t.is(","):
			return nil, p.expected(`"," or the end`)
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
}

func (p *parser) requirement() (requirement, error) {
	r := requirement{op: exists}
	if p.t.is("!") {
		r.op = absent
		if err := p.advance(); err != nil {
			return r, err
		}
	}
	r.column = p.column(p.t.at)
	var err error
	if r.key, err = p.key(r.op == exists); err != nil || r.op == absent {
		return r, err
	}
	switch {
	case p.t.kind == end || p.t.is(","):
		return r, nil
	case p.t.is("=") || p.t.is("=="):
		r.op = in
		r.values, err = p.one()
	case p.t.is("!="):
		r.op = notIn
		r.values, err = p.one()
	case p.t.isWord("in"):
		r.op = in
		r.values, err = p.set()
	case p.t.isWord("notin"):
		r.op = notIn
		r.values, err = p.set()
	default:
		err = p.expected(`one of = == != in notin, or "," or the end`)
	}
	return r, err
}

// key reads a key. Where "!" could stand, it is expected too.
func (p *parser) key(orNot bool) (string, error) {
	t := p.t
	switch {
	case t.kind != word && t.kind != quoted && orNot:
		return "", p.expected(`a key or "!"`)
	case t.kind != word && t.kind != quoted:
		return "", p.expected("a key")
	case t.text == "":
		return "", p.expected("a key that is not empty")
	case isField(t.text) && t.kind == quoted:
		// Not taken for a label: who quotes ".name" may well mean the field.
		return "", p.wrong(t.at, "a quoted key must not begin with a dot").
			WithHint("write a field without quotes; a label must not begin with a dot")
	case t.text == ".":
		return "", p.expected("the name of a field after its dot")
	}
	return t.text, p.advance()
}

// one reads an operator and the value after it.
func (p *parser) one() ([]string, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	v, err := p.value()
	return []string{v}, err
}

func (p *parser) value() (string, error) {
	if p.t.kind != word && p.t.kind != quoted {
		return "", p.expected("a value")
	}
	v := p.t.text
	return v, p.advance()
}

// set reads the word before a set and the set.
func (p *parser) set() ([]string, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if !p.t.is("(") {
		return nil, p.expected(`"("`)
	}
	var values []string
	for {
		if err := p.advance(); err != nil {
			return nil, err
		}
		if len(values) == maxValues {
			return nil, p.tooMany(maxValues, "values in one set")
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		switch {
		case p.t.is(")"):
			return values, p.advance()
		case !p.t.is(","):
			return nil, p.expected(`"," or ")"`)
		}
	}
}

func (p *parser) advance() error {
	var err error
	p.t, err = p.next()
	return err
}

func (p *parser) expected(what string) error {
	return p.wrong(p.t.at, "expected %s, found %s", what, p.t).WithHint(quoteHint)
}

func (p *parser) tooMany(limit int, what string) error {
	return &errkind.Error{
		Kind: errkind.Limit, Field: path, Max: fmt.Sprintf("%d %s", limit, what),
		Msg: fmt.Sprintf("column %d: more than %d %s", p.column(p.t.at), limit, what),
	}
}
