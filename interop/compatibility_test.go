package interop

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/conformance"
)

const compatible = "../docs/compatibility.md"

// docs/compatibility.md tells what the files of findings say. Its numbers are those of
// the last TestCheck with -update, since they change with every new rule.
func TestCompatibilityDocument(t *testing.T) {
	text, err := os.ReadFile(compatible)
	if err != nil {
		t.Fatal(err)
	}
	want := compatibility(t, rows(text))
	if *update {
		if err := os.WriteFile(compatible, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("go test -run TestCompatibilityDocument -update\n%s", diff)
	}
}

// writeCompatibility writes the document with new numbers. What fails and is not known
// has passed when it was tried again.
func writeCompatibility(t *testing.T, reports map[string]*checkReport) {
	t.Helper()
	numbers := map[string]string{}
	for name, r := range reports {
		known := mustFind(t, name)
		n := map[string]int{}
		for _, res := range r.Results {
			f, _ := about(known, res.Rule)
			switch {
			case res.Status == "broken" || res.Status == "fail" && f == nil: // by load only
				n["pass"]++
			case res.Status == "fail":
				n[res.Level]++
			default:
				n[res.Status]++
			}
		}
		numbers[name] = fmt.Sprintf("%d | %d | %d | %d | %d | %d", n["pass"], n["must"], n["should"], n["may"]+n["quirk"], n["unseen"], n["skip"])
	}
	if err := os.WriteFile(compatible, compatibility(t, numbers), 0o644); err != nil {
		t.Fatal(err)
	}
}

var row = regexp.MustCompile(`(?m)^\| \[([^\]]+)\]\(#[^)]*\) \| ((?:\d+ \| ){5}\d+) \|$`)

// rows returns the numbers of each peer in the document.
func rows(text []byte) map[string]string {
	all := map[string]string{}
	for _, m := range row.FindAllSubmatch(text, -1) {
		all[string(m[1])] = string(m[2])
	}
	return all
}

// compatibility is the document.
func compatibility(t *testing.T, numbers map[string]string) []byte {
	t.Helper()
	rules := map[string]*conformance.Rule{}
	for _, r := range conformance.Rules() {
		rules[r.ID] = r
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Compatibility

What [acp check](check.md) finds in agents and clients of others and in ours, why, and
whose it is: the SDK is the library a peer is written with, the example or the test agent
what is written on it.

| compared | version | released | |
|---|---|---|---|
%s
| | passed | must failed | should failed | may, quirk failed | unseen | skipped |
|---|--:|--:|--:|--:|--:|--:|
`, comparedVersions(t))
	for _, p := range checkedPeers() {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", p.name, anchor(p.name), numbers[p.name])
	}
	b.WriteString(`
The numbers are of rules; often one cause breaks several. Unseen is what an example never
does, skipped what it does not offer. What fails sometimes, with the speed of the machine,
is marked *sometimes*.
`)
	b.WriteString("\nOf all that failed in the peers of others, this is the SDKs' own:\n\n")
	for _, p := range checkedPeers() {
		var titles []string
		for _, f := range mustFind(t, p.name) {
			if strings.HasPrefix(f.whose, "the SDK") {
				titles = append(titles, "  - "+f.title+"\n")
			}
		}
		if len(titles) > 0 {
			fmt.Fprintf(&b, "- [%s](#%s)\n%s", p.name, anchor(p.name), strings.Join(titles, ""))
		}
	}
	b.WriteString(`
**Raw transcripts.** What others fail, a thing aside that happens only at times, is shown by a
conversation that acp check has no part in:
` + "`TestRaw` in `interop`" + ` speaks it line by line with the peer and compares what comes. → goes to
the agent, ← to the client; lines that follow each other are one write; … is left out,
$names are what came before, $mark is a byte order mark. CI runs these conversations and the checks, and fails when
something else is found, or something no more. The sources of this page are in
[interop/compatibility](../interop/compatibility).
`)
	for _, p := range checkedPeers() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n```sh\nacp check %s %s-- %s\n```\n", p.name, p.about, p.side, flagsShown(p), p.shown)
		known := mustFind(t, p.name)
		if len(known) == 0 {
			b.WriteString("\nNothing failed.\n")
		}
		for _, f := range known {
			fmt.Fprintf(&b, "\n### %s\n\n**%s.** %s\n\n", f.title, strings.ToUpper(f.whose[:1])+f.whose[1:], f.text)
			for i, id := range f.rules {
				r := rules[id]
				if r == nil {
					t.Fatalf("%s: there is no rule %s", f.at, id)
				}
				sometimes := ""
				if f.maybe[i] {
					sometimes = ", *sometimes*"
				}
				fmt.Fprintf(&b, "- `%s` (%s%s): %s\n", id, r.Level, sometimes, r.Text)
			}
			if len(f.talk) == 0 {
				continue
			}
			b.WriteString("\n<details><summary>Raw transcript</summary>\n\n```text\n")
			for _, l := range f.talk {
				switch l.kind {
				case toAgent:
					fmt.Fprintf(&b, "→ %s\n", l.text)
				case toClient:
					fmt.Fprintf(&b, "← %s\n", l.text)
				default:
					fmt.Fprintf(&b, "  (%s)\n", l.text)
				}
			}
			b.WriteString("```\n\n</details>\n")
		}
	}
	return b.Bytes()
}

// comparedVersions are the rows for the SDKs of others.
func comparedVersions(t *testing.T) string {
	t.Helper()
	all, looked := readVersions(t)
	var b strings.Builder
	for _, sdk := range []struct{ name, shown, registry string }{
		{"@agentclientprotocol/sdk", "the official TypeScript SDK, `@agentclientprotocol/sdk`", "npm"},
		{"github.com/coder/acp-go-sdk", "`coder/acp-go-sdk`", "the Go module proxy"},
	} {
		c := all[sdk.name]
		fmt.Fprintf(&b, "| %s | %s | %s | the newest that %s had on %s |\n", sdk.shown, c.version, c.released, sdk.registry, looked)
	}
	return b.String()
}

func flagsShown(p *checked) string {
	var b strings.Builder
	for _, topic := range p.only {
		b.WriteString("--only " + topic + " ")
	}
	for _, f := range p.flags {
		if strings.Contains(f, "*") {
			f = "'" + f + "'"
		}
		b.WriteString(f + " ")
	}
	return b.String()
}

var notAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)

// anchor is how GitHub names a heading.
func anchor(s string) string {
	return strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(s), ""), " ", "-")
}
