package acphost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxPolicyText bounds the text of a policy, in bytes.
const maxPolicyText = 1 << 20

// A ParseError says where a policy is wrong.
type ParseError struct {
	Line, Column int // of the offending value or member; both begin with 1, columns count bytes
	Err          error
}

// Error returns the position and the reason.
func (e *ParseError) Error() string {
	return fmt.Sprintf("policy:%d:%d: %v", e.Line, e.Column, e.Err)
}

// Unwrap returns the reason.
func (e *ParseError) Unwrap() error { return e.Err }

// ParsePolicy reads a policy from JSON. All members but version are optional:
//
//	{
//		"version": 1,
//		"default": "ask",
//		"askTimeout": "2m",
//		"remember": "session",
//		"maxRemembered": 1024,
//		"rules": [
//			{"effect": "deny", "paths": ["~/.ssh/**", "**/.env"]},
//			{"effect": "allow", "kinds": ["read", "search"], "paths": ["./**"]},
//			{"name": "tests", "effect": "allow", "commands": ["go test *"]}
//		]
//	}
//
// The members of rules are those of [Rule]. Unknown members, members that are
// there twice and values of the wrong type are errors, as are texts of more than
// 1 MiB. Every error is a *[ParseError].
func ParsePolicy(data []byte) (*Policy, error) {
	p := new(Policy)
	if err := parsePolicy(p, data); err != nil {
		return nil, locate(data, err)
	}
	return p, nil
}

func parsePolicy(p *Policy, data []byte) error {
	if len(data) > maxPolicyText {
		return &posError{maxPolicyText, fmt.Errorf("has more than %d bytes", maxPolicyText)}
	}
	if !utf8.Valid(data) {
		i := bytes.IndexFunc(data, func(r rune) bool { return r == utf8.RuneError })
		return &posError{i, errors.New("is not valid UTF-8")}
	}
	r := &reader{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	top, err := r.value(0)
	if err != nil {
		return err
	}
	end := r.next()
	if _, err := r.dec.Token(); err != io.EOF {
		return &posError{end, errors.New("there is more after the policy")}
	}
	version, rules := 0, []node(nil)
	err = top.members(map[string]func(node) error{
		"version": func(n node) (err error) {
			if version, err = n.integer(); err == nil && version != 1 {
				err = n.wrong("the version is not 1")
			}
			return err
		},
		"default": func(n node) error {
			s, err := n.oneOf(string(EffectAllow), string(EffectDeny), string(EffectAsk))
			p.Default = Effect(s)
			return err
		},
		"askTimeout": func(n node) error {
			s, err := n.text()
			if err != nil {
				return err
			}
			if p.AskTimeout, err = time.ParseDuration(s); err != nil || p.AskTimeout <= 0 {
				return n.wrong(`is not a time such as "90s" or "2m"`)
			}
			return nil
		},
		"remember": func(n node) error {
			s, err := n.oneOf(string(RememberSession), string(RememberForever), string(RememberNever))
			p.Remember = Scope(s)
			return err
		},
		"maxRemembered": func(n node) (err error) {
			if p.MaxRemembered, err = n.integer(); err == nil && p.MaxRemembered <= 0 {
				err = n.wrong("is not a positive number")
			}
			return err
		},
		"rules": func(n node) (err error) {
			rules, err = n.list()
			return err
		},
	})
	if err == nil && version == 0 {
		err = top.wrong(`the member "version" is missing`)
	}
	if err != nil {
		return err
	}
	for i, n := range rules {
		c, err := parseRule(n, i+1)
		if err != nil {
			return err
		}
		p.rules = append(p.rules, c)
	}
	return nil
}

func parseRule(n node, number int) (rule, error) {
	var r Rule
	at := map[string]node{"effect": n} // if it is missing
	read := func(name string, set func(node) error) func(node) error {
		return func(v node) error { at[name] = v; return set(v) }
	}
	texts := func(name string, to *[]string) func(node) error {
		return read(name, func(v node) (err error) { *to, err = v.texts(); return err })
	}
	members := map[string]func(node) error{
		"name":   func(v node) (err error) { r.Name, err = v.text(); return err },
		"effect": read("effect", func(v node) error { s, err := v.text(); r.Effect = Effect(s); return err }),
		"allowAlways": read("allowAlways", func(v node) (err error) {
			r.AllowAlways, err = v.boolean()
			return err
		}),
	}
	for name, to := range map[string]*[]string{
		"kinds": &r.Kinds, "paths": &r.Paths, "cwd": &r.Cwd, "commands": &r.Commands,
		"commandRegexps": &r.CommandRegexps, "servers": &r.Servers,
	} {
		members[name] = texts(name, to)
	}
	if err := n.members(members); err != nil {
		return rule{}, err
	}
	c, err := compile(r, number)
	var e *memberError
	if errors.As(err, &e) {
		v := at[e.member]
		if e.index >= 0 {
			v = v.items[e.index]
		}
		return c, v.wrong(c.Name + ": " + e.Error())
	}
	return c, err
}

// posError is an error at an offset.
type posError struct {
	pos int
	err error
}

func (e *posError) Error() string { return e.err.Error() }

func locate(data []byte, err error) *ParseError {
	var e *posError
	if !errors.As(err, &e) {
		e = &posError{0, err}
	}
	before := data[:min(max(e.pos, 0), len(data))]
	return &ParseError{
		Line:   1 + bytes.Count(before, []byte("\n")),
		Column: len(before) - bytes.LastIndexByte(before, '\n'),
		Err:    e.err,
	}
}

// A node is a JSON value and where it begins.
type node struct {
	pos   int
	value any // as from json.Decoder.Token; for lists and objects the delimiter
	names []node
	items []node // of a list, or the values to the names
}

// maxPolicyDepth is more than any policy needs.
const maxPolicyDepth = 8

type reader struct {
	data []byte
	dec  *json.Decoder
}

// next returns where the next token begins.
func (r *reader) next() int {
	pos := int(r.dec.InputOffset())
	for pos < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[pos]) >= 0 {
		pos++
	}
	return pos
}

func (r *reader) value(depth int) (node, error) {
	n := node{pos: r.next()}
	var err error
	if n.value, err = r.dec.Token(); err != nil {
		return n, r.syntax(n.pos, err)
	}
	delim, ok := n.value.(json.Delim)
	if !ok {
		return n, nil
	}
	if depth == maxPolicyDepth {
		return n, n.wrong("is nested too deeply")
	}
	for r.dec.More() {
		if delim == '{' {
			name, err := r.value(depth + 1)
			if err != nil {
				return n, err
			}
			n.names = append(n.names, name)
		}
		item, err := r.value(depth + 1)
		if err != nil {
			return n, err
		}
		n.items = append(n.items, item)
	}
	pos := r.next()
	if _, err := r.dec.Token(); err != nil {
		return n, r.syntax(pos, err)
	}
	return n, nil
}

func (r *reader) syntax(pos int, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		pos, err = len(r.data), errors.New("unexpected end")
	}
	return &posError{pos, err}
}

func (n node) wrong(reason string) error { return &posError{n.pos, errors.New(reason)} }

// members calls a function for each member of an object.
func (n node) members(known map[string]func(node) error) error {
	if n.value != json.Delim('{') {
		return n.wrong("is not an object")
	}
	seen := map[string]bool{}
	for i, at := range n.names {
		name, _ := at.value.(string)
		set := known[name]
		if set == nil {
			return at.wrong("unknown member " + strconv.Quote(name))
		}
		if seen[name] {
			return at.wrong("the member " + strconv.Quote(name) + " is there twice")
		}
		seen[name] = true
		if err := set(n.items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (n node) list() ([]node, error) {
	if n.value != json.Delim('[') {
		return nil, n.wrong("is not a list")
	}
	return n.items, nil
}

func (n node) text() (string, error) {
	s, ok := n.value.(string)
	if !ok {
		return "", n.wrong("is not a string")
	}
	return s, nil
}

func (n node) oneOf(allowed ...string) (string, error) {
	s, err := n.text()
	if err == nil && !slices.Contains(allowed, s) {
		err = n.wrong(strconv.Quote(s) + " is none of " + strings.Join(allowed, ", "))
	}
	return s, err
}

func (n node) texts() ([]string, error) {
	items, err := n.list()
	out := []string{}
	for _, item := range items {
		s, err := item.text()
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, err
}

func (n node) boolean() (bool, error) {
	b, ok := n.value.(bool)
	if !ok {
		return false, n.wrong("is not true or false")
	}
	return b, nil
}

func (n node) integer() (int, error) {
	num, ok := n.value.(json.Number)
	i, err := strconv.Atoi(num.String())
	if !ok || err != nil {
		return 0, n.wrong("is not an integer")
	}
	return i, nil
}
