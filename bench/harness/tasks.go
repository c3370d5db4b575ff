package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/goacp/acp/internal/standin"
)

// A task is given to each agent. The model says its steps, one answer each, and then that
// it is done.
type task struct {
	name  string
	about string
	files map[string]string // of the directory
	// steps are what the model wants done, in a directory.
	steps func(dir string) [][]op
	// meanwhile is called before an answer, such as to change a file behind the agent.
	meanwhile func(dir string, step int) error
	// refuse says why the service refuses a request; "" if it does not.
	refuse func(r *standin.Request) string
	// verdict says what became of the files: right, refused, or WRONG and how. It is called
	// with what the last tool said, and whether the agent showed its call as done.
	verdict func(dir, said string, done bool) string

	deny   bool   // permissions are denied
	mcp    string // a server of the session: sixty, with as many tools, or odd, with an odd schema
	again  bool   // there is another turn after the first
	hang   bool   // the model stops in the middle of an answer, and the turn is cancelled
	kill   bool   // the agent is killed while the model answers, and loads the session again
	tokens bool   // the stand-in reports a token for each four bytes
}

// source is a file that is edited.
const source = `package main

import "fmt"

// greet greets.
func greet(name string) string {
	if name == "" {
		return "Hello, nobody"
	}
	return "Helo, " + name
}

// part returns a part.
func part(n int) int {
	if n > 10 {
		return 10
	}
	return n
}

func main() {
	fmt.Println(greet("you"))
	fmt.Println(part(1))
	fmt.Println(part(2))
}
`

// is returns a verdict that holds that main.go became want. A file that is as it was is
// one where the edit was refused.
func is(want string) func(string, string, bool) string {
	return func(dir, _ string, _ bool) string {
		data, err := os.ReadFile(filepath.Join(dir, "main.go"))
		switch {
		case err != nil:
			return "WRONG: " + err.Error()
		case string(data) == want:
			return "right"
		case string(data) == source:
			return "refused"
		case strings.Join(strings.Fields(string(data)), " ") == strings.Join(strings.Fields(want), " "):
			return "right, with other blanks"
		}
		return "WRONG"
	}
}

func replaced(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(source) }

var tasks = []task{
	{
		name: "fix", about: "read a file, mend a line, run a command",
		files: map[string]string{"main.go": source},
		steps: func(dir string) [][]op {
			f := filepath.Join(dir, "main.go")
			return [][]op{
				{{do: "read", path: f}},
				{{do: "edit", path: f, old: "\treturn \"Helo, \" + name\n", new: "\treturn \"Hello, \" + name\n"}},
				{{do: "run", command: "grep -n Hello main.go"}},
			}
		},
		verdict: is(replaced("Helo", "Hello")),
	},
	{
		name: "five edits", about: "five edits of one file, in five answers",
		files: map[string]string{"main.go": source},
		steps: func(dir string) [][]op {
			f := filepath.Join(dir, "main.go")
			steps := [][]op{{{do: "read", path: f}}}
			for _, p := range [][2]string{{"\treturn \"Helo, \" + name", "\treturn \"Hello, \" + name"}, {"// greet greets.", "// greet says hello."}, {"// part returns a part.", "// part is at most ten."}, {"\tfmt.Println(part(1))", "\tfmt.Println(part(3))"}, {"\tfmt.Println(part(2))", "\tfmt.Println(part(4))"}} {
				steps = append(steps, []op{{do: "edit", path: f, old: p[0], new: p[1]}})
			}
			return steps
		},
		verdict: is(replaced("Helo", "Hello", "greet greets.", "greet says hello.", "part returns a part.", "part is at most ten.", "part(1)", "part(3)", "part(2)", "part(4)")),
	},
	{
		name: "big output", about: "a command that prints 200 kB",
		steps: func(string) [][]op {
			return [][]op{{{do: "run", command: "i=0; while [ $i -lt 5000 ]; do echo \"line $i of a long output of a command\"; i=$((i+1)); done"}}}
		},
	},
	{
		name: "stale file", about: "the place of an edit was changed after it was read",
		files: map[string]string{"main.go": source},
		steps: func(dir string) [][]op {
			f := filepath.Join(dir, "main.go")
			return [][]op{{{do: "read", path: f}}, {{do: "edit", path: f, old: "\treturn \"Helo, \" + name\n", new: "\treturn \"Hi, \" + name\n"}}}
		},
		meanwhile: func(dir string, step int) error { return after(step, dir, "main.go", replaced("Helo", "Welcome")) },
		verdict:   keeps("main.go", replaced("Helo", "Welcome"), "WRONG"),
	},
	{
		name: "blanks", about: "the old text has blanks where the file has tabs",
		files: map[string]string{"main.go": source},
		steps: func(dir string) [][]op {
			f := filepath.Join(dir, "main.go")
			return [][]op{{{do: "read", path: f}}, {{do: "edit", path: f, old: "    if n > 10 {\n        return 10\n    }", new: "    if n > 9 {\n        return 9\n    }"}}}
		},
		verdict: is(replaced("n > 10", "n > 9", "return 10", "return 9")),
	},
	{
		name: "ambiguous", about: "the old text is there twice",
		files: map[string]string{"main.go": source},
		steps: func(dir string) [][]op {
			f := filepath.Join(dir, "main.go")
			return [][]op{{{do: "read", path: f}}, {{do: "edit", path: f, old: "\tfmt.Println(part(", new: "\tfmt.Print(part("}}}
		},
		verdict: is(source),
	},
	{
		name: "parallel", about: "five files read in one answer",
		files: map[string]string{"a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n", "d.txt": "d\n", "e.txt": "e\n"},
		steps: func(dir string) [][]op {
			var all []op
			for _, n := range []string{"a", "b", "c", "d", "e"} {
				all = append(all, op{do: "read", path: filepath.Join(dir, n+".txt")})
			}
			return [][]op{all}
		},
	},
	{
		name: "long", about: "thirty files of 8 kB, one after the other", tokens: true,
		files: longFiles(),
		steps: func(dir string) [][]op {
			var steps [][]op
			for i := range 30 {
				steps = append(steps, []op{{do: "read", path: filepath.Join(dir, fmt.Sprintf("f%d.txt", i))}})
			}
			return steps
		},
	},
	{name: "cancel", about: "the turn is cancelled while the model answers; the next one has to work", hang: true},
	{
		name: "kill", about: "kill -9 after a tool was asked for; the session is loaded and continues", kill: true,
		files: map[string]string{"main.go": source},
		steps: func(dir string) [][]op {
			return [][]op{{{do: "read", path: filepath.Join(dir, "main.go")}}, {{do: "run", command: "sleep 60"}}}
		},
	},
	{
		name: "denied", about: "the user denies a command", deny: true,
		steps: func(string) [][]op { return [][]op{{{do: "run", command: "touch done.txt"}}} },
		verdict: func(dir, _ string, _ bool) string {
			if _, err := os.Stat(filepath.Join(dir, "done.txt")); err == nil {
				return "WRONG: it was run"
			}
			return "refused"
		},
	},
	{
		name: "twin", about: "the place of an edit was changed, and another one is like it but for blanks",
		files: map[string]string{"a.py": twins},
		steps: func(dir string) [][]op {
			f := filepath.Join(dir, "a.py")
			const old = "            self.db.commit()\n            self.log(\"saved\")\n"
			return [][]op{{{do: "read", path: f}}, {{do: "edit", path: f, old: old, new: strings.Replace(old, "saved", "B is stored", 1)}}}
		},
		meanwhile: func(dir string, step int) error { return after(step, dir, "a.py", changedTwin) },
		verdict:   keeps("a.py", changedTwin, "WRONG: the other place was changed"),
	},
	{
		name: "foreign lines", about: "a file is written anew to which the user has added a line since it was read",
		files: map[string]string{"notes.txt": "one\n"},
		steps: func(dir string) [][]op {
			f := filepath.Join(dir, "notes.txt")
			return [][]op{{{do: "read", path: f}}, {{do: "write", path: f, new: "two\n"}}}
		},
		meanwhile: func(dir string, step int) error { return after(step, dir, "notes.txt", "one\nthe user's\n") },
		verdict:   keeps("notes.txt", "one\nthe user's\n", "WRONG: the user's line is gone"),
	},
	{
		name: "unread", about: "a file is written that there is already, and that was never read",
		files: map[string]string{"notes.txt": "the user's\n"},
		steps: func(dir string) [][]op {
			return [][]op{{{do: "write", path: filepath.Join(dir, "notes.txt"), new: "mine\n"}}}
		},
		verdict: keeps("notes.txt", "the user's\n", "WRONG: the user's text is gone"),
	},
	{
		name: "not made", about: "an edit whose new text is elsewhere in the file, and whose old text is not there",
		files: map[string]string{"c.ini": ports},
		steps: func(dir string) [][]op {
			f := filepath.Join(dir, "c.ini")
			return [][]op{{{do: "read", path: f}}, {{do: "edit", path: f, old: "port_number = 8080\n", new: "port_number = 9090\n"}}}
		},
		verdict: func(dir, said string, done bool) string {
			if v := keeps("c.ini", ports, "WRONG")(dir, said, done); v != "refused" || !done {
				return v
			}
			return "WRONG: it says that it was made"
		},
	},
	{
		name: "image", about: "an image of 4.5 MB is read, which the service refuses in base64; the next turn has to work", again: true,
		files: map[string]string{"big.png": noise()},
		steps: func(dir string) [][]op { return [][]op{{{do: "read", path: filepath.Join(dir, "big.png")}}} },
		refuse: func(r *standin.Request) string {
			if len(r.Body) > maxImage {
				return "image exceeds 5 MB maximum"
			}
			return ""
		},
	},
	{
		name: "odd schema", about: "an MCP server has a tool whose schema the service refuses", mcp: "odd", again: true,
		refuse: func(r *standin.Request) string {
			for name, schema := range r.Schemas {
				var top map[string]json.RawMessage
				if json.Unmarshal(schema, &top) == nil && (top["oneOf"] != nil || top["anyOf"] != nil || top["allOf"] != nil) {
					return "tool " + name + ": input_schema does not support oneOf, allOf, or anyOf at the top level"
				}
			}
			return ""
		},
	},
	{
		name: "lines", about: "a file of 3,000 lines is read: does the result say where it ends?",
		files: map[string]string{"rows.txt": rows()},
		steps: func(dir string) [][]op { return [][]op{{{do: "read", path: filepath.Join(dir, "rows.txt")}}} },
		verdict: func(_, said string, _ bool) string {
			all := row.FindAllStringSubmatch(said, -1)
			if len(all) == 0 {
				return "WRONG: it has no line"
			}
			last, _ := strconv.Atoi(all[len(all)-1][1])
			rest := row.ReplaceAllString(said, "")
			switch {
			case last == 3000 && len(all) == 3000:
				return "all of them"
			case regexp.MustCompile(fmt.Sprintf(`\b(%d|%d)\b`, last, last+1)).MatchString(rest):
				return fmt.Sprintf("says that %d are shown", len(all))
			}
			return fmt.Sprintf("WRONG: shows %d and does not say so", len(all))
		},
	},
	{
		name: "braces", about: "a search in *.{ts,tsx}",
		files: map[string]string{"a.tsx": "const needle = 1\n", "b.go": "package b\n"},
		steps: func(string) [][]op { return [][]op{{{do: "search", path: "*.{ts,tsx}", old: "needle"}}} },
		verdict: func(_, said string, _ bool) string {
			if strings.Contains(said, "a.tsx") {
				return "found"
			}
			return "WRONG: not found"
		},
	},
	{name: "60 tools", about: "an MCP server with sixty tools", mcp: "sixty"},
}

const twins = `class A:
    def save(self):
        self.db.commit()
        self.log("saved")

class B:
    def run(self):
        if x:
            self.db.commit()
            self.log("saved")
`

var changedTwin = strings.Replace(twins, `            self.log("saved")`, `            self.log("finished it")`, 1)

const ports = "[dev]\nport_number = 8080 # x\n[prod]\nport_number = 9090\n"

// maxImage is more than a request has without an image that is too large.
const maxImage = 5 << 20

var row = regexp.MustCompile(`row (\d+) x+`)

// rows are 3,000 lines of 100 bytes.
func rows() string {
	var b strings.Builder
	for i := range 3000 {
		line := fmt.Sprintf("row %d ", i+1)
		b.WriteString(line + strings.Repeat("x", 99-len(line)) + "\n")
	}
	return b.String()
}

// noise is an image that does not become smaller when it is packed.
func noise() string {
	i := image.NewNRGBA(image.Rect(0, 0, 1060, 1060))
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(i.Pix)
	var b bytes.Buffer
	if err := png.Encode(&b, i); err != nil {
		panic(err)
	}
	return b.String()
}

// after writes a file before the second answer.
func after(step int, dir, name, text string) error {
	if step != 1 {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
}

// keeps returns a verdict that holds that a file is text.
func keeps(name, text, otherwise string) func(string, string, bool) string {
	return func(dir, _ string, _ bool) string {
		if data, _ := os.ReadFile(filepath.Join(dir, name)); string(data) == text {
			return "refused"
		}
		return otherwise
	}
}

func longFiles() map[string]string {
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("f%d.txt", i)] = strings.Repeat(fmt.Sprintf("File %d has this line many times over.\n", i), 210)
	}
	return files
}
