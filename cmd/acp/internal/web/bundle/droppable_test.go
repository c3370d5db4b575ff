package main

import (
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

// TestDroppable: what a script does not use of a module with schemas is left out, together with what only that uses.
func TestDroppable(t *testing.T) {
	module := `const made = globalThis.made;
/** A text. */
export const zText = made("text");
export const zList = made({
    items: () => {
        const x = zText;
        return x;
    },
    last: made("last"),
}).and(made("more"));
// The end.
export const zOther = made("other");
export const zMap = { a: made("map") };
`
	text, err := droppable(module)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text, "@__PURE__"); n != 4 {
		t.Errorf("%d constants can be left out, want 4:\n%s", n, text)
	}
	for _, tt := range []struct{ uses, has, not string }{
		{"zList", `"text" "last" "more"`, `"other"`},
		{"zOther", `"other"`, `"text" "last" "more"`},
		{"zText", `"text"`, `"last" "more" "other"`},
		{"zMap", `"map" ({`, `"other"`},
	} {
		res := api.Transform(strings.ReplaceAll(text, "export ", "")+"console.log("+tt.uses+");\n", api.TransformOptions{TreeShaking: api.TreeShakingTrue, Format: api.FormatIIFE})
		code := string(res.Code)
		for _, want := range strings.Fields(tt.has) {
			if !strings.Contains(code, want) {
				t.Errorf("with %s: no %s in\n%s", tt.uses, want, code)
			}
		}
		for _, no := range strings.Fields(tt.not) {
			if strings.Contains(code, no) {
				t.Errorf("with %s: %s in\n%s", tt.uses, no, code)
			}
		}
	}
	for _, bad := range []string{"", "export let a = made();\n", "export const a;\n", "export const a = made(\n", "export const a = made(\nexport const b = 1;\n"} {
		if text, err := droppable(bad); err == nil {
			t.Errorf("%q: no error, but\n%s", bad, text)
		}
	}
}
