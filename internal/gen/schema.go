package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/goacp/acp/internal/overlay"
)

// A node is one JSON schema. Only the keywords the protocol's schemas use are
// known; any other is an error, because ignoring a constraint would be a guess.
type node struct {
	ref           string
	types         []string
	props         []prop
	required      []string
	items         *node
	anyOf         []*node
	oneOf         []*node
	allOf         []*node
	constant      json.RawMessage
	deflt         json.RawMessage
	format        string
	minimum       json.RawMessage
	maximum       json.RawMessage
	minLength     int
	minItems      int
	open          bool  // additionalProperties or unevaluatedProperties: true
	values        *node // additionalProperties with a schema
	not           *node
	discriminator string

	defaultOnError bool
	skipInvalid    bool
	defaultOnNull  bool
	side, method   string
}

type prop struct {
	name string
	node *node
}

// A document is one schema file: its definitions in order.
type document struct {
	defs []def
	byID map[string]*node
}

type def struct {
	name string
	node *node
}

func (n *node) prop(name string) *node {
	for _, p := range n.props {
		if p.name == name {
			return p.node
		}
	}
	return nil
}

func (n *node) requires(name string) bool { return slices.Contains(n.required, name) }

// hasType reports whether t is among the node's types.
func (n *node) hasType(t string) bool { return slices.Contains(n.types, t) }

// alternatives returns anyOf or oneOf, whichever the node has.
func (n *node) alternatives() []*node {
	if len(n.anyOf) > 0 {
		return n.anyOf
	}
	return n.oneOf
}

// target returns the definition the node stands for: a $ref, or an allOf of
// exactly one.
func (n *node) target() string {
	if n.ref != "" {
		return n.ref
	}
	if len(n.allOf) == 1 {
		return n.allOf[0].ref
	}
	return ""
}

func parseDocument(data []byte) (*document, error) {
	ms, err := overlay.Members(data)
	if err != nil {
		return nil, err
	}
	doc := &document{byID: map[string]*node{}}
	for _, m := range ms {
		if m.Name != "$defs" {
			continue // the envelope at the top is jsonrpc's business
		}
		defs, err := overlay.Members(m.Value)
		if err != nil {
			return nil, err
		}
		for _, d := range defs {
			n, err := parseNode(d.Value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.Name, err)
			}
			doc.defs = append(doc.defs, def{d.Name, n})
			doc.byID[d.Name] = n
		}
	}
	if len(doc.defs) == 0 {
		return nil, fmt.Errorf("no definitions")
	}
	return doc, nil
}

const refPrefix = "#/$defs/"

func parseNode(raw json.RawMessage) (*node, error) {
	ms, err := overlay.Members(raw)
	if err != nil {
		return nil, err
	}
	n := &node{}
	for _, m := range ms {
		if err := n.set(m.Name, m.Value); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return n, nil
}

func (n *node) set(key string, v json.RawMessage) (err error) {
	switch key {
	case "$ref":
		if err = json.Unmarshal(v, &n.ref); err == nil {
			if len(n.ref) <= len(refPrefix) || n.ref[:len(refPrefix)] != refPrefix {
				return fmt.Errorf("unsupported reference %q", n.ref)
			}
			n.ref = n.ref[len(refPrefix):]
		}
	case "type":
		if v[0] == '[' {
			return json.Unmarshal(v, &n.types)
		}
		n.types = make([]string, 1)
		return json.Unmarshal(v, &n.types[0])
	case "properties":
		var ms []overlay.Member
		if ms, err = overlay.Members(v); err != nil {
			return err
		}
		for _, m := range ms {
			p, err := parseNode(m.Value)
			if err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
			n.props = append(n.props, prop{m.Name, p})
		}
	case "required":
		return json.Unmarshal(v, &n.required)
	case "items":
		n.items, err = parseNode(v)
	case "anyOf":
		n.anyOf, err = parseNodes(v)
	case "oneOf":
		n.oneOf, err = parseNodes(v)
	case "allOf":
		n.allOf, err = parseNodes(v)
	case "not":
		n.not, err = parseNode(v)
	case "const":
		n.constant = v
	case "default":
		n.deflt = v
	case "format":
		return json.Unmarshal(v, &n.format)
	case "minimum":
		n.minimum = v
	case "maximum":
		n.maximum = v
	case "minLength":
		return json.Unmarshal(v, &n.minLength)
	case "minItems":
		return json.Unmarshal(v, &n.minItems)
	case "additionalProperties", "unevaluatedProperties":
		if v[0] == '{' {
			n.values, err = parseNode(v)
			return err
		}
		return json.Unmarshal(v, &n.open)
	case "discriminator":
		var d struct{ PropertyName string }
		err = json.Unmarshal(v, &d)
		n.discriminator = d.PropertyName
	case "x-deserialize-default-on-error":
		return json.Unmarshal(v, &n.defaultOnError)
	case "x-deserialize-skip-invalid-items":
		return json.Unmarshal(v, &n.skipInvalid)
	case "x-deserialize-default-on-null":
		return json.Unmarshal(v, &n.defaultOnNull)
	case "x-side":
		return json.Unmarshal(v, &n.side)
	case "x-method":
		return json.Unmarshal(v, &n.method)
	case "contentEncoding", "$schema":
		// Says how the string is to be read, not which strings are valid.
	default:
		return fmt.Errorf("unknown keyword")
	}
	return err
}

func parseNodes(raw json.RawMessage) ([]*node, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, err
	}
	out := make([]*node, len(items))
	for i, it := range items {
		n, err := parseNode(it)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

// indent writes raw with one tab a level, keeping the order of members.
func indent(w io.Writer, raw []byte) error {
	var buf bytes.Buffer
	if err := json.Indent(&buf, raw, "", "\t"); err != nil {
		return err
	}
	buf.WriteByte('\n')
	_, err := w.Write(buf.Bytes())
	return err
}
