package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A document is one schema, of which the definitions can be added to.
type document struct {
	top  []Member
	at   int // of $defs in top
	defs []Member
}

func parse(raw []byte) (*document, error) {
	top, err := Members(raw)
	if err != nil {
		return nil, err
	}
	d := &document{top: top, at: find(top, "$defs")}
	if d.at < 0 {
		return nil, errors.New("no definitions")
	}
	if d.defs, err = Members(top[d.at].Value); err != nil {
		return nil, err
	}
	if len(d.defs) == 0 {
		return nil, errors.New("no definitions")
	}
	return d, nil
}

func (d *document) bytes() []byte {
	top := slices.Clone(d.top)
	top[d.at].Value = Object(d.defs)
	return Object(top)
}

// apply adds to both schemas. It collects all errors, an [EntryError] each; each names the
// entry, and begins with where.
func (v *Version) apply(stable, unstable *document, where string) (errs []error) {
	each := func(kind string, o object, add func(name string, raw json.RawMessage) error) {
		for _, m := range o {
			if err := add(m.Name, m.Value); err != nil {
				errs = append(errs, &EntryError{where + ".unstable." + kind + "." + m.Name, err})
			}
		}
	}
	each("defs", v.Unstable.Defs, unstable.addDef)
	each("props", v.Unstable.Props, unstable.addProp)
	each("variants", v.Unstable.Variants, func(name string, raw json.RawMessage) error {
		var alts []json.RawMessage
		if err := json.Unmarshal(raw, &alts); err != nil {
			return err
		}
		var errs []error
		for _, a := range alts {
			errs = append(errs, unstable.addAlternative(name, a))
		}
		return errors.Join(errs...)
	})
	each("values", v.Unstable.Values, func(name string, raw json.RawMessage) error {
		var values []string
		if err := json.Unmarshal(raw, &values); err != nil {
			return err
		}
		var errs []error
		for _, x := range values {
			text, _ := json.Marshal(x)
			errs = append(errs, unstable.addAlternative(name, Object([]Member{{"type", json.RawMessage(`"string"`)}, {"const", text}})))
		}
		return errors.Join(errs...)
	})
	has := func(name string) bool { return find(stable.defs, name) >= 0 || slices.Contains(v.Promote, name) }
	for _, p := range v.Promote {
		if err := promote(stable, unstable, p, has); err != nil {
			errs = append(errs, &EntryError{where + ".promote " + p, err})
		}
	}
	return errs
}

var reference = regexp.MustCompile(`"\$ref":\s*"#/\$defs/([^"]*)"`)

// missing returns a definition that a value refers to and the stable schema has not.
func missing(raw json.RawMessage, has func(string) bool) string {
	for _, ref := range reference.FindAllSubmatch(raw, -1) {
		if name := string(ref[1]); !has(name) {
			return name
		}
	}
	return ""
}

// trim takes the properties away from a definition that refer to what the stable schema has
// not: they stay unstable.
func trim(raw json.RawMessage, has func(string) bool) (json.RawMessage, error) {
	ms, err := Members(raw)
	if err != nil {
		return nil, err
	}
	if at := find(ms, "properties"); at >= 0 {
		props, err := Members(ms[at].Value)
		if err != nil {
			return nil, err
		}
		var required []string
		if k := find(ms, "required"); k >= 0 {
			if err := json.Unmarshal(ms[k].Value, &required); err != nil {
				return nil, err
			}
		}
		ms[at].Value = Object(slices.DeleteFunc(props, func(p Member) bool {
			return missing(p.Value, has) != "" && !slices.Contains(required, p.Name)
		}))
	}
	raw = Object(ms)
	if other := missing(raw, has); other != "" {
		return nil, fmt.Errorf("it refers to %s, which the stable schema has not: promote that too", other)
	}
	return raw, nil
}

// errTaken says that a schema has what is to be added, and that it is the same.
var errTaken = errors.New("the schema has it, equal: delete this entry")

// taken says that a schema has what is to be added.
func taken(here, there json.RawMessage) error {
	if equal(here, there) {
		return errTaken
	}
	return fmt.Errorf("the schema has it, and it differs:\n\there   %s\n\tschema %s", compact(here), compact(there))
}

func (d *document) addDef(name string, raw json.RawMessage) error {
	if _, err := Members(raw); err != nil {
		return err
	}
	if i := find(d.defs, name); i >= 0 {
		return taken(raw, d.defs[i].Value)
	}
	d.defs = append(d.defs, Member{name, raw})
	return nil
}

// def returns the members of a definition.
func (d *document) def(name string) (int, []Member, error) {
	i := find(d.defs, name)
	if i < 0 {
		return 0, nil, fmt.Errorf("the schema has no definition %s", name)
	}
	ms, err := Members(d.defs[i].Value)
	return i, ms, err
}

// addProp adds "Type.property", in front of _meta.
func (d *document) addProp(name string, raw json.RawMessage) error {
	typ, prop, ok := strings.Cut(name, ".")
	if !ok {
		return errors.New("a property is named Type.property")
	}
	i, ms, err := d.def(typ)
	if err != nil {
		return err
	}
	at := find(ms, "properties")
	if at < 0 {
		return errors.New("the definition has no properties")
	}
	props, err := Members(ms[at].Value)
	if err != nil {
		return err
	}
	if k := find(props, prop); k >= 0 {
		return taken(raw, props[k].Value)
	}
	k := find(props, "_meta")
	if k < 0 {
		k = len(props)
	}
	ms[at].Value = Object(slices.Insert(props, k, Member{prop, raw}))
	d.defs[i].Value = Object(ms)
	return nil
}

// alternatives returns the list of a union or an enum.
func alternatives(ms []Member) (at int, alts []json.RawMessage, err error) {
	if at = find(ms, "oneOf"); at < 0 {
		at = find(ms, "anyOf")
	}
	if at < 0 {
		return 0, nil, errors.New("the definition is neither a union nor an enum")
	}
	return at, alts, json.Unmarshal(ms[at].Value, &alts)
}

// addAlternative adds a variant or a value in front of what stands for all others, and takes
// it away from that.
func (d *document) addAlternative(name string, alt json.RawMessage) error {
	key, tag := constant(alt)
	if tag == "" {
		return fmt.Errorf("%s has no constant to know it by", compact(alt))
	}
	i, ms, err := d.def(name)
	if err != nil {
		return err
	}
	at, alts, err := alternatives(ms)
	if err != nil {
		return err
	}
	end := len(alts)
	for k, a := range alts {
		other, t := constant(a)
		if other == key && t == tag {
			return taken(alt, a)
		}
		if t == "" && end == len(alts) {
			end = k
		}
	}
	if end < len(alts) {
		if alts[end], err = without(alts[end], key, tag); err != nil {
			return err
		}
	}
	ms[at].Value = list(slices.Insert(alts, end, alt))
	d.defs[i].Value = Object(ms)
	return nil
}

// without adds a tag to those that the alternative for all others does not stand for.
func without(catchAll json.RawMessage, key, tag string) (json.RawMessage, error) {
	ms, err := Members(catchAll)
	at := find(ms, "not")
	if err != nil || at < 0 {
		return catchAll, err
	}
	not, err := Members(ms[at].Value)
	if err != nil {
		return nil, err
	}
	k, alts, err := alternatives(not)
	if err != nil {
		return nil, err
	}
	name, _ := json.Marshal(key)
	text, _ := json.Marshal(tag)
	not[k].Value = list(append(alts, json.RawMessage(
		fmt.Sprintf(`{"type":"object","properties":{%s:{"type":"string","const":%s}},"required":[%s]}`, name, text, name))))
	ms[at].Value = Object(not)
	return Object(ms), nil
}

// constant returns what an alternative is known by: the property that is a constant and its
// value, or for a value of an enum that alone.
func constant(alt json.RawMessage) (key, tag string) {
	var a struct {
		Const      json.RawMessage
		Properties map[string]struct{ Const json.RawMessage }
	}
	if json.Unmarshal(alt, &a) != nil {
		return "", ""
	}
	if a.Const != nil {
		return "", strings.Trim(string(a.Const), `"`)
	}
	for k, p := range a.Properties {
		if p.Const != nil && (key == "" || k < key) {
			key, tag = k, strings.Trim(string(p.Const), `"`)
		}
	}
	return key, tag
}

// promote copies one entry from the unstable to the stable schema.
func promote(stable, unstable *document, entry string, has func(string) bool) error {
	switch {
	case strings.Contains(entry, "="):
		typ, tag, _ := strings.Cut(entry, "=")
		_, ms, err := unstable.def(typ)
		if err != nil {
			return err
		}
		_, alts, err := alternatives(ms)
		if err != nil {
			return err
		}
		for _, a := range alts {
			if _, t := constant(a); t == tag {
				return stable.addAlternative(typ, a)
			}
		}
		return errors.New("the unstable schema has no such variant or value")
	case strings.Contains(entry, "."):
		typ, prop, _ := strings.Cut(entry, ".")
		_, ms, err := unstable.def(typ)
		if err != nil {
			return err
		}
		if at := find(ms, "properties"); at >= 0 {
			props, err := Members(ms[at].Value)
			if err != nil {
				return err
			}
			if k := find(props, prop); k >= 0 {
				return stable.addProp(entry, props[k].Value)
			}
		}
		return errors.New("the unstable schema has no such property")
	}
	i := find(unstable.defs, entry)
	if i < 0 {
		return errors.New("the unstable schema has no such definition")
	}
	raw, err := trim(unstable.defs[i].Value, has)
	if err != nil {
		return err
	}
	return stable.addDef(entry, raw)
}
