package agent

import (
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"path"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var exercises = flag.Int("exercises", 3, "how many exercises TestExercises solves")

// TestExercises solves exercises in Go from end to end: a scripted model reads the stub and
// the test, sees the test fail, writes the solution in one of several ways and runs the
// test again.
func TestExercises(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil || runtime.GOOS == "windows" {
		t.Skip("the exercises want the go command and another shell")
	}
	archive, err := txtar.ParseFile("testdata/exercises.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	var names []string
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
		if dir, base := path.Split(f.Name); base == "body" {
			names = append(names, strings.TrimSuffix(dir, "/"))
		}
	}
	if len(names) != 39 {
		t.Errorf("%d exercises", len(names))
	}
	for i, name := range names[:min(*exercises, len(names))] {
		t.Run(name, func(t *testing.T) {
			stub, test := files[name+"/"+name+".go"], files[name+"/"+name+"_test.go"]
			w, with := scripted(t, solution(t, i, name, stub, files[name+"/imports"], files[name+"/body"]))
			k := start(t, 1+i%2, with)
			k.write("go.mod", "module exercises\n\ngo 1.26\n")
			k.write(name+"/"+name+".go", stub)
			k.write(name+"/"+name+"_test.go", test)
			k.tell("/mode full")
			got := k.tell("Make the tests of " + name + " pass.")
			if !strings.Contains(got, "It passes.") {
				t.Errorf("%s\nthe model was last told:\n%s", got, w.last())
			}
			for _, r := range w.requests {
				strict(t, r.Messages)
			}
			cmd := exec.Command("go", "test", "./"+name)
			cmd.Dir = k.cwd
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// solution is the script of a model that solves an exercise, in one of four ways.
func solution(t *testing.T, way int, name, stub, imports, body string) string {
	t.Helper()
	file := name + "/" + name + ".go"
	use := func(tool string, input any) string {
		data, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("use %s <<END\n%s\nEND\n", tool, data)
	}
	type edit struct {
		Old string `json:"old"`
		New string `json:"new"`
	}
	var added string
	for _, i := range strings.Fields(imports) {
		if i != "none" {
			added += fmt.Sprintf("import %q\n", i)
		}
	}
	indented := "\t" + strings.ReplaceAll(strings.TrimSpace(body), "\n", "\n\t")
	head := "package " + name + "\n"
	solved := strings.Replace(strings.Replace(stub, head, head+"\n"+added, 1), "\tpanic(\"to do\")", indented, 1)
	var change string
	switch way % 4 {
	case 0: // edits, as the file has it
		change = use("edit", map[string]any{"path": file, "edits": []edit{{head, head + "\n" + added}, {"\tpanic(\"to do\")", indented}}})
	case 1: // the whole file
		change = use("write", map[string]any{"path": file, "text": solved})
	case 2: // edits without the indentation that the file has
		change = use("edit", map[string]any{"path": file, "edits": []edit{{head, head + "\n" + added}, {"panic(\"to do\")\n}", strings.TrimSpace(body) + "\n}"}}})
	case 3: // one edit that is refused first
		change = use("edit", map[string]any{"path": file, "edits": []edit{{"\tpanic(\"todo\")", "x"}}}) +
			"---\nwhen The nearest place is\n" +
			use("edit", map[string]any{"path": file, "edits": []edit{{head, head + "\n" + added}, {"\tpanic(\"to do\")", indented}}})
	}
	return "when Make the tests\nthink I look at it first.\nsay I read the stub and the test.\n" +
		use("plan", map[string]any{"steps": []map[string]string{{"text": "read", "status": "in_progress"}, {"text": "solve", "status": "pending"}}}) +
		use("read", map[string]any{"path": file}) + use("read", map[string]any{"path": name + "/" + name + "_test.go"}) +
		"---\nwhen func Test\n" + use("run", map[string]any{"command": "go vet ./" + name + "; go test ./" + name}) +
		"---\nwhen exit status 1\n" + change +
		"---\nwhen Changed\n" + use("run", map[string]any{"command": "go test ./" + name}) +
		"---\nwhen has succeeded\nsay It passes.\n"
}
