package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	// verdict says what became of the files: right, refused, or WRONG and how.
	verdict func(dir string) string

	deny   bool // permissions are denied
	mcp    bool // the session has an MCP server with 60 tools
	hang   bool // the model stops in the middle of an answer, and the turn is cancelled
	kill   bool // the agent is killed while the model answers, and loads the session again
	tokens bool // the stand-in reports a token for each four bytes
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
func is(want string) func(string) string {
	return func(dir string) string {
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
		meanwhile: func(dir string, step int) error {
			if step != 1 {
				return nil
			}
			return os.WriteFile(filepath.Join(dir, "main.go"), []byte(replaced("Helo", "Welcome")), 0o644)
		},
		verdict: func(dir string) string {
			if data, _ := os.ReadFile(filepath.Join(dir, "main.go")); string(data) == replaced("Helo", "Welcome") {
				return "refused"
			}
			return "WRONG"
		},
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
		verdict: func(dir string) string {
			if _, err := os.Stat(filepath.Join(dir, "done.txt")); err == nil {
				return "WRONG: it was run"
			}
			return "refused"
		},
	},
	{name: "60 tools", about: "an MCP server with sixty tools", mcp: true},
}

func longFiles() map[string]string {
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("f%d.txt", i)] = strings.Repeat(fmt.Sprintf("File %d has this line many times over.\n", i), 210)
	}
	return files
}
