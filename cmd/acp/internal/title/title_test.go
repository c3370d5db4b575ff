package title

import (
	"strings"
	"testing"

	"github.com/goacp/acp"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		want    string
		content []acp.ContentBlock
	}{
		{"", nil},
		{"", []acp.ContentBlock{acp.Text(" \n ")}},
		{"fix it", []acp.ContentBlock{acp.Text("\n  fix it\nplease"), acp.Text("more")}},
		{"red", []acp.ContentBlock{&acp.ResourceLink{Name: "x", URI: "file:///x"}, acp.Text("\x1b[31mred\x1b[0m")}},
		{"and now?", []acp.ContentBlock{acp.Text(Handover + "\n\nUser:\nhi"), acp.Text("and now?")}},
		{"why?", []acp.ContentBlock{acp.Text("```\n$ ls\na\n```"), acp.Text("why?")}},
		{"$ ls", []acp.ContentBlock{acp.Text("```\n$ ls\na\n```")}},
		{strings.Repeat("x", maxWidth-1) + "…", []acp.ContentBlock{acp.Text(strings.Repeat("x", 500))}},
	} {
		if got := Of(tt.content); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestBetter: a slash command is a title only until something better was said.
func TestBetter(t *testing.T) {
	for _, tt := range []struct{ title, asked, want string }{
		{"", "", ""}, {"", "x", "x"}, {"", "/x", "/x"}, {"/x", "/y", "/x"}, {"/x", "y", "y"}, {"/x", "", "/x"}, {"x", "y", "x"},
	} {
		if got := Better(tt.title, tt.asked); got != tt.want {
			t.Errorf("Better(%q, %q) = %q", tt.title, tt.asked, got)
		}
	}
}
