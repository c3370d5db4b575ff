package acphost

import (
	"slices"
	"testing"
)

// TestShapes: a path of which something is not known may be what it is, and is nothing that it cannot be.
func TestShapes(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	piece := func(text string) CommandPiece { return CommandPiece{Text: text} }
	open := func(name string) CommandPiece { return CommandPiece{Open: true, Name: name} }
	values := map[string][]CommandWord{"f": {{Text: "a"}, {Text: ".env"}}, "d": {{Text: "s", Open: true, Pieces: []CommandPiece{piece("s"), open("*")}}}, "loop": {{Open: true, Pieces: []CommandPiece{open("loop")}}}}
	for _, tt := range []struct {
		pattern, dir string
		pieces       []CommandPiece
		want         bool
	}{
		{"**/.env", "/w", []CommandPiece{open("x")}, true},
		{"**/.env", "/w", []CommandPiece{piece("a"), open("x")}, true}, // a/.env
		{"**/.env", "/w", []CommandPiece{open("x"), piece(".go")}, false},
		{"**/.env", "/w", []CommandPiece{piece(".e"), open("*")}, true},
		{"**/.env", "/w", []CommandPiece{open("*")}, false},
		{"**/.env", "/w", []CommandPiece{open("?"), piece("env")}, false},
		{"**/.env", "/w", []CommandPiece{piece(".en"), open("?")}, true},
		{"**/.env", "/w", []CommandPiece{piece("a"), open("*")}, false},
		{"**/.env", "/w", []CommandPiece{piece("a"), open("#")}, false},
		{"**/.env", "/w", []CommandPiece{open("*"), piece("/.env")}, true},
		{"**/.env", "/w", []CommandPiece{open("f")}, true},
		{"**/.ENV", "/w", []CommandPiece{open("f")}, true},
		{"**/.envrc", "/w", []CommandPiece{open("f")}, false},
		{"**/.envrc", "/w", []CommandPiece{open("f"), piece("rc")}, true},
		{"**/x", "/w", []CommandPiece{open("loop")}, true},
		{"secret/**", "/w", []CommandPiece{open("d"), piece("/key")}, true},
		{"other/**", "/w", []CommandPiece{open("d"), piece("/key")}, false},
		{"secret/**", "/w", []CommandPiece{open("PWD"), piece("/secret/key")}, true},
		{"secret/**", "/w", []CommandPiece{open("x"), piece("/../secret/key")}, true},
		{"secret/**", "/w", []CommandPiece{piece("a/"), open("*"), piece("/../../secret/key")}, true},
		{"secret/**", "/w", []CommandPiece{piece("/etc/"), open("x")}, false},
		{"secret/**", "/w", []CommandPiece{piece("/"), open("x")}, true},
		{"secret/**", "/w", []CommandPiece{piece("/v"), open("x")}, false},
		{"~/.ssh/**", "/w", []CommandPiece{open("HOME"), piece("/.ssh/"), open("*")}, true},
		{"~/.ssh/**", "/w", []CommandPiece{open("HOME"), piece("/go/"), open("*")}, false},
		{"~/.ssh/**", "/w", []CommandPiece{piece("../home/me/.s"), open("*"), piece("/id")}, true},
		{"**/*.{pem,key}", "/w", []CommandPiece{open("*"), piece("y")}, true},
		{"**/*.{pem,key}", "/w", []CommandPiece{open("*"), piece("o")}, false},
		{"**/[a-c].env", "/w", []CommandPiece{open("?"), piece(".env")}, true},
		{"**/[!a-z].env", "/w", []CommandPiece{piece("b"), open("*"), piece(".env")}, false},
	} {
		g, err := newPathGlob(tt.pattern, true)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(shapesOf(CommandWord{Open: true, Pieces: tt.pieces}, values, 0), func(s pathShape) bool {
			s = s.join(shapeOf(tt.dir))
			if text, ok := s.text(); ok {
				return g.matches(text, tt.dir)
			}
			return g.mayMatch(s, tt.dir)
		})
		if got != tt.want {
			t.Errorf("%q and %+v: %t", tt.pattern, tt.pieces, got)
		}
	}
}

// FuzzShape: what a pattern matches, it may match if a piece of it is not known.
func FuzzShape(f *testing.F) {
	f.Add("**/.env", "/w/a/.env", 3, 5)
	f.Add("secret/**", "/w/secret/x", 1, 4)
	f.Add("**/[!a]*.{pem,KEY}", "/w/b.key", 4, 6)
	f.Add("/a?c\\*", "/ABc*", 0, 9)
	f.Fuzz(func(t *testing.T, pattern, path string, from, to int) {
		g, err := newPathGlob(pattern, true)
		path = cleanPath(path, "/w")
		if err != nil || !g.matches(path, "/w") {
			return
		}
		text := shapeOf(path)
		if string(text) != path || from < 0 || from > to || to > len(text) || len(text) > 200 {
			return
		}
		cut := text[from:to]
		try := func(c rune) {
			s := slices.Concat(text[:from], pathShape{c}, text[to:])
			if !g.mayMatch(s, "/w") {
				t.Errorf("%q matches %q, but not with %d for %q", pattern, path, c, string(cut))
			}
		}
		try(anyText)
		if !slices.Contains(cut, '/') {
			try(anyName)
			if !slices.Contains(cut, '.') {
				try(anyWord)
			}
			if len(cut) == 0 || cut[0] != '.' {
				try(anyHidden)
			}
			if len(cut) == 1 {
				try(oneOfName)
			}
			if len(cut) == 1 && cut[0] != '.' {
				try(oneHidden)
			}
		}
	})
}

// TestJoin holds how paths of which something is not known are cleaned.
func TestJoin(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	const any, star = "\x00", "\x01"
	decode := func(text string) (s pathShape) {
		for _, c := range text {
			switch c {
			case 0:
				c = anyText
			case 1:
				c = anyName
			}
			s = append(s, c)
		}
		return s
	}
	for _, tt := range []struct{ dir, path, want string }{
		{"/w", "a", "/w/a"}, {"/w", "./a/../b", "/w/b"}, {"/w", "../a", "/a"}, {"/w", "../../..", "/"}, {"/w", "/a//b/.", "/a/b"}, {"/w", "", "/w"},
		{"/w", "~", "/home/me"}, {"/w", "~/a", "/home/me/a"}, {"/w", "~you/a", any + "/a"}, {"/w", "~" + any, "/w/~" + any},
		{"/w", any, any}, {"/w", any + "/a", any + "/a"}, {"/w", "a" + any + "/../b", "/w/" + any + "/b"}, {"/w", star + "/../b", "/w/b"}, {"/w", any + "/../b", any + "/b"},
		{any, "a", any + "/a"}, {"/", "a", "/a"}, {"/w/" + star, "../a", "/w/a"},
	} {
		if got := decode(tt.path).join(decode(tt.dir)); !slices.Equal(got, decode(tt.want)) {
			t.Errorf("%q in %q is %v, want %v", tt.path, tt.dir, got, decode(tt.want))
		}
	}
}
