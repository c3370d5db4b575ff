package source

import (
	"testing"
	"testing/fstest"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestSum(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	tree := func() fstest.MapFS {
		return fstest.MapFS{
			"src/app.ts": file("a\nb"), "src/view/x.ts": file("x"), "bundle/main.go": file("package main"),
			"package.json": file("{}"), "package-lock.json": file("{}"), "assets/app.js": file("made"), "bundle/main_test.go": file("test"),
		}
	}
	first, err := Sum(tree())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		change func(fstest.MapFS)
		same   bool
	}{
		{"nothing", func(fstest.MapFS) {}, true},
		{"what is made", func(m fstest.MapFS) { m["assets/app.js"] = file("other") }, true},
		{"a test", func(m fstest.MapFS) { m["bundle/main_test.go"] = file("other") }, true},
		{"ends of lines", func(m fstest.MapFS) { m["src/app.ts"] = file("a\r\nb") }, true},
		{"a source", func(m fstest.MapFS) { m["src/app.ts"] = file("a\nc") }, false},
		{"a source more", func(m fstest.MapFS) { m["src/y.ts"] = file("") }, false},
		{"another name", func(m fstest.MapFS) { m["src/view/y.ts"] = m["src/view/x.ts"]; delete(m, "src/view/x.ts") }, false},
		{"the bundler", func(m fstest.MapFS) { m["bundle/main.go"] = file("package other") }, false},
		{"the packages", func(m fstest.MapFS) { m["package-lock.json"] = file("{ }") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := tree()
			tt.change(m)
			if sum, err := Sum(m); err != nil || (sum == first) != tt.same {
				t.Error(sum == first, err)
			}
		})
	}
	if _, err := Sum(fstest.MapFS{"src/app.ts": file("")}); err == nil {
		t.Error("a folder without a lock file has a sum")
	}
}
