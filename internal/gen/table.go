package main

import (
	"fmt"
	"slices"
	"strings"
)

// A table holds every decision the generator cannot read off the schema. An
// entry that nothing asks for is an error, so the table cannot rot.
type table struct {
	skip       set // definitions that are not generated
	names      lookup[string]
	values     lookup[string] // Go names of enum values: "Enum=value"
	aliases    lookup[string] // definition → existing Go type
	patch      set            // three-state properties: "Type.property"
	metaPatch  set            // upserts whose _meta has three states
	pointers   set            // optional properties whose zero value means something
	constants  lookup[string] // properties with one legal value
	inline     lookup[inlineSpec]
	merge      lookup[mergeSpec]
	untagged   lookup[untaggedSpec]
	byMember   lookup[[]string]
	lists      lookup[listSpec]
	ordered    lookup[orderedSpec]
	coalloc    lookup[coalloc]
	fuse       set // messages allocated together with what nearly all of them hold
	formValues set // raw answers to forms
	closed     set // enums of one value that are constants
	files      []fileRule
	fileUsed   map[int]bool
}

// inlineSpec names a union whose members are flattened into another object.
type inlineSpec struct{ field, union, doc, fieldDoc string }

// mergeSpec makes one struct of a union whose variants hardly differ.
type mergeSpec struct{ key, enum, enumDoc string }

// untaggedSpec is about the variant that stands for a missing discriminator:
// a tag it is also known by, and whether it takes unknown tags too.
type untaggedSpec struct {
	tag    string
	anyTag bool
}

// listSpec is a union of array types: their names, and the member of the
// items that tells them apart.
type listSpec struct{ names, keys []string }

// orderedSpec is a JSON object whose order matters to people.
type orderedSpec struct{ element string } // Go name of its members

// fileRule puts definitions into a file: exact names, or prefixes with a star.
type fileRule struct {
	file string
	defs []string
}

type lookup[T any] struct {
	what    string
	entries map[string]T
	used    map[string]bool
}

func entries[T any](what string, m map[string]T) lookup[T] {
	return lookup[T]{what: what, entries: m, used: map[string]bool{}}
}

func (l lookup[T]) get(key string) (T, bool) {
	v, ok := l.entries[key]
	if ok {
		l.used[key] = true
	}
	return v, ok
}

func (l lookup[T]) unused() []string {
	var out []string
	for k := range l.entries {
		if !l.used[k] {
			out = append(out, l.what+" "+k)
		}
	}
	return out
}

func isKey[T any](l lookup[T], key string) bool {
	_, ok := l.get(key)
	return ok
}

type set struct{ lookup[struct{}] }

func (s set) has(key string) bool {
	_, ok := s.get(key)
	return ok
}

func names(what string, keys ...string) set {
	m := map[string]struct{}{}
	for _, k := range keys {
		m[k] = struct{}{}
	}
	return set{entries(what, m)}
}

// properties expands "Type: a b c" to "Type.a", "Type.b", "Type.c".
func properties(what string, lines ...string) set {
	var keys []string
	for _, l := range lines {
		typ, props, _ := strings.Cut(l, ": ")
		for _, p := range strings.Fields(props) {
			keys = append(keys, typ+"."+p)
		}
	}
	return names(what, keys...)
}

func (t *table) unused() []string {
	out := slices.Concat(t.skip.unused(), t.names.unused(), t.values.unused(), t.aliases.unused(), t.patch.unused(),
		t.metaPatch.unused(), t.pointers.unused(), t.constants.unused(), t.inline.unused(), t.merge.unused(),
		t.untagged.unused(), t.byMember.unused(), t.lists.unused(), t.ordered.unused(), t.coalloc.unused(), t.fuse.unused(), t.formValues.unused(), t.closed.unused())
	n := 0
	for _, r := range t.files {
		for _, d := range r.defs {
			if !t.fileUsed[n] {
				out = append(out, fmt.Sprintf("file %s: %s", r.file, d))
			}
			n++
		}
	}
	slices.Sort(out)
	return out
}

// fileOf returns the file of a definition: an exact rule before a prefix.
func (t *table) fileOf(def string) string {
	if t.fileUsed == nil {
		t.fileUsed = map[int]bool{}
	}
	for _, exact := range []bool{true, false} {
		n := 0
		for _, r := range t.files {
			for _, d := range r.defs {
				if d == def && exact || !exact && strings.HasSuffix(d, "*") && strings.HasPrefix(def, d[:len(d)-1]) {
					t.fileUsed[n] = true
					return r.file
				}
				n++
			}
		}
	}
	return ""
}
