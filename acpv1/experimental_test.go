package acpv1

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/internal/overlay"
)

// names lists everything that a schema file names, as the table of experimental
// things spells it: definitions, properties, enum values, union tags, methods.
func names(t *testing.T, file string) map[string]bool {
	t.Helper()
	type schema struct {
		Properties   map[string]schema
		AnyOf, OneOf []schema
		Const        any
		Method       string `json:"x-method"`
	}
	set, err := overlay.Read("../schema")
	if err != nil {
		t.Fatal(err)
	}
	data, err := set.Schema(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Defs map[string]schema `json:"$defs"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for name, d := range doc.Defs {
		// The envelopes around the messages are package jsonrpc's business.
		if d.Method == "" && (strings.HasSuffix(name, "Request") || strings.HasSuffix(name, "Response") || strings.HasSuffix(name, "Notification")) &&
			slices.Contains([]string{"Agent", "Client", "Proxy"}, strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "Request"), "Response"), "Notification")) {
			continue
		}
		out[name] = true
		if d.Method != "" {
			out[d.Method] = true
		}
		for p := range d.Properties {
			if p != "_meta" {
				out[name+"."+p] = true
			}
		}
		for _, a := range append(d.AnyOf, d.OneOf...) {
			if a.Const != nil {
				out[fmt.Sprintf("%s=%v", name, a.Const)] = true
			}
			for _, p := range a.Properties {
				if p.Const != nil {
					out[fmt.Sprintf("%s=%v", name, p.Const)] = true
				}
			}
		}
	}
	return out
}

// TestExperimental holds the table to the schemas, both ways.
func TestExperimental(t *testing.T) {
	stable, all := names(t, "v1.json"), names(t, "v1.unstable.json")
	var want []string
	for name := range all {
		if Experimental(name) == stable[name] {
			t.Errorf("Experimental(%q) is %t, and the stable schema has it: %t", name, Experimental(name), stable[name])
		}
		// Of what is new as a whole only the whole is listed.
		owner := name
		if i := strings.IndexAny(name, ".="); i > 0 {
			owner = name[:i]
		}
		if !stable[name] && (owner == name || stable[owner]) {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, experimental); diff != "" {
		t.Error(diff)
	}
	if len(want) == 0 || len(stable) < 300 {
		t.Errorf("%d names, %d of them stable: the schemas were not read", len(all), len(stable))
	}
	for _, name := range []string{"", ".", "=", "NoSuchThing", "NoSuchThing.x", "SessionUpdate", "no/such/method"} {
		if Experimental(name) {
			t.Errorf("%q is experimental", name)
		}
	}
}
