package tool

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

// resolved returns the schema of a tool as it is checked.
func resolved(t testing.TB, tool Tool) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(tool.Schema, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func allows(r *jsonschema.Resolved, input []byte) bool {
	var v any
	return json.Unmarshal(input, &v) == nil && r.Validate(v) == nil
}

// far is a tool of an MCP server.
var far = Tool{Name: "mcp__far__do", Schema: json.RawMessage(`{"type":"object","properties":{"list":{"type":"array","items":{"type":"integer"}},"name":{"type":"string"},"size":{"type":"integer"}}}`)}

const hello = `{"edits":[{"new":"b","old":"a"}],"path":"f"}`

// mendCases are inputs and what becomes of them; nothing if they are refused.
var mendCases = []struct {
	tool              Tool
	name, input, want string
}{

	{Edit, "a list in a text", `{"path":"f","edits":"[{\"old\":\"a\",\"new\":\"b\"}]"}`, hello},
	{Edit, "a list in a text in a text", `{"path":"f","edits":"\"[{\\\"old\\\":\\\"a\\\",\\\"new\\\":\\\"b\\\"}]\""}`, hello},
	{Edit, "line ends in a text", "{\"path\":\"f\",\"edits\":\"[{\\\"old\\\":\\\"a\\\\n\\\",\\\"new\\\":\\\"b\\nc\\\"}]\"}", `{"edits":[{"new":"b\nc","old":"a\n"}],"path":"f"}`},
	{Edit, "line ends", "{\"path\":\"f\",\"edits\":[{\"old\":\"a\nb\",\"new\":\"\tc\"}]}", `{"edits":[{"new":"\tc","old":"a\nb"}],"path":"f"}`},
	{Edit, "a list of texts", `{"path":"f","edits":["{\"old\":\"a\",\"new\":\"b\"}"]}`, hello},
	{Edit, "no list", `{"path":"f","edits":{"old":"a","new":"b"}}`, hello},
	{Edit, "an object in a text", `{"path":"f","edits":"{\"old\":\"a\",\"new\":\"b\"}"}`, hello},
	{Edit, "flat", `{"path":"f","old":"a","new":"b"}`, hello},
	{Edit, "flat, with an empty list", `{"path":"f","old":"a","new":"b","edits":[]}`, hello},
	{Edit, "of Claude Code", `{"file_path":"f","old_string":"a","new_string":"b","replace_all":false}`, `{"all":false,"edits":[{"new":"b","old":"a"}],"path":"f"}`},
	{Edit, "all as a text", `{"file_path":"f","old_string":"a","new_string":"b","replace_all":"true"}`, `{"all":true,"edits":[{"new":"b","old":"a"}],"path":"f"}`},
	{Edit, "of SWE-agent", `{"command":"str_replace","path":"f","old_str":"a","new_str":"b"}`, hello},
	{Edit, "of pi", `{"path":"f","edits":[{"oldText":"a","newText":"b"}]}`, hello},
	{Edit, "of opencode", `{"filePath":"f","oldString":"a","newString":"b"}`, hello},
	{Edit, "of Gemini", `{"file_path":"f","old_string":"a","new_string":"b","instruction":"Because.","expected_replacements":1}`, hello},
	{Edit, "of Cline", `{"filename":"f","changes":[{"search":"a","replace":"b"}]}`, hello},
	{Edit, "the path in each edit", `{"edits":[{"path":"f","old":"a","new":"b"},{"path":"f","old":"c","new":"d"}]}`, `{"edits":[{"new":"b","old":"a"},{"new":"d","old":"c"}],"path":"f"}`},
	{Edit, "of several files", `{"edits":[{"path":"f","old":"a","new":"b"},{"path":"g","old":"c","new":"d"}]}`, ""},
	{Edit, "the path in each edit, under a rare name", `{"edits":[{"target_file":"f","old":"a","new":"b"}]}`, hello},
	{Edit, "the path in an edit, too", `{"path":"f","edits":[{"target_file":"f","old":"a","new":"b"}]}`, hello},
	{Edit, "the path in one of the edits, too", `{"path":"f","edits":[{"file":"f","old":"a","new":"b"},{"old":"c","new":"d"}]}`, `{"edits":[{"new":"b","old":"a"},{"new":"d","old":"c"}],"path":"f"}`},
	{Edit, "a path twice in an edit", `{"edits":[{"path":"f","target_file":"f","old":"a","new":"b"}]}`, hello},
	{Edit, "a path that is empty in an edit", `{"path":"f","edits":[{"file":"","old":"a","new":"b"}]}`, hello},
	{Edit, "another file in an edit", `{"path":"f","edits":[{"target_file":"g","old":"a","new":"b"}]}`, ""},
	{Edit, "another file in one of the edits", `{"path":"f","edits":[{"old":"a","new":"b"},{"absolute_path":"g","old":"c","new":"d"}]}`, ""},
	{Edit, "several files in an edit", `{"path":"f","edits":[{"files":["f","g"],"old":"a","new":"b"}]}`, ""},
	{Edit, "two paths in an edit", `{"edits":[{"path":"f","target_file":"g","old":"a","new":"b"}]}`, ""},
	{Edit, "two paths in an edit, one of them that of the input", `{"path":"f","edits":[{"file":"f","filename":"g","old":"a","new":"b"}]}`, ""},
	{Edit, "another file in a single one", `{"path":"f","edit":{"target_file":"g","old":"a","new":"b"}}`, ""},
	{Edit, "of a single one with its path", `{"edit":{"target_file":"f","old":"a","new":"b"}}`, hello},
	{Edit, "not to be done, in an edit", `{"path":"f","edits":[{"old":"a","new":"b","dry_run":true}]}`, ""},
	{Edit, "to be done, in an edit", `{"path":"f","edits":[{"old":"a","new":"b","dry_run":false}]}`, hello},
	{Edit, "patterns in an edit", `{"path":"f","edits":[{"old":"a.*","new":"b","regex":true}]}`, ""},
	{Edit, "another command in an edit", `{"path":"f","edits":[{"command":"insert","old":"a","new":"b"}]}`, ""},
	{Edit, "a list and an old text", `{"path":"f","edits":[{"old":"a","new":"b"}],"old_string":"c"}`, ""},
	{Edit, "a list and a new text", `{"path":"f","edits":[{"old":"a","new":"b"}],"new":"c"}`, ""},
	{Edit, "a new text that is two", `{"path":"f","old":"a","new":"b","new_string":["c","d"]}`, ""},
	{Edit, "a new text that is two, in an edit", `{"path":"f","edits":[{"old":"a","new":"b","new_string":["c","d"]}]}`, ""},
	{Edit, "null", `{"path":"f","edits":[{"old":"a","new":"b","all":null}],"all":null}`, hello},
	{Edit, "more", `{"path":"f","edits":[{"old":"a","new":"b","why":"x"}],"description":"y"}`, hello},
	{Edit, "a number", `{"path":"f","edits":[{"old":8080,"new":9090}]}`, `{"edits":[{"new":"9090","old":"8080"}],"path":"f"}`},
	{Edit, "wrapped", `{"input":{"path":"f","edits":[{"old":"a","new":"b"}]}}`, hello},
	{Edit, "a text", `"{\"path\":\"f\",\"edits\":[{\"old\":\"a\",\"new\":\"b\"}]}"`, hello},
	{Edit, "no new text", `{"path":"f","old":"a"}`, ""},
	{Edit, "a new text that is null", `{"path":"f","edits":[{"old":"a","new":null}]}`, ""},
	{Edit, "two old texts", `{"path":"f","old_string":"a","old_str":"c","new_string":"b"}`, ""},
	{Edit, "a list and more", `{"path":"f","edits":[{"old":"a","new":"b"}],"old_string":"c","new_string":"d"}`, ""},
	{Edit, "another command", `{"command":"insert","path":"f","old_str":"a","new_str":"b"}`, ""},
	{Edit, "not to be done", `{"path":"f","old":"a","new":"b","dry_run":true}`, ""},
	{Edit, "patterns", `{"path":"f","old":"a.*","new":"b","regex":true}`, ""},
	{Edit, "a truth value", `{"path":"f","edits":[{"old":"a","new":true}]}`, ""},
	{Edit, "a cut text", `{"path":"f","edits":"[{\"old\":\"a\",\"ne"}`, ""},
	{Write, "content", `{"file_path":"f","content":"x"}`, `{"path":"f","text":"x"}`},
	{Write, "of SWE-agent", `{"command":"create","path":"f","file_text":"x"}`, `{"path":"f","text":"x"}`},
	{Write, "an object", `{"path":"f.json","content":{"a":1}}`, ""},
	{Write, "lines", `{"path":"f","content":["a","b"]}`, ""},
	{Write, "at the end", `{"path":"f","content":"x","mode":"append"}`, ""},
	{Write, "not at the end", `{"path":"f","content":"x","append":false,"mode":"overwrite"}`, `{"path":"f","text":"x"}`},
	{Write, "two texts", `{"path":"f","content":"x","contents":"y"}`, ""},
	{Read, "of Claude Code", `{"file_path":"f","offset":"5","limit":10}`, `{"from":5,"lines":10,"path":"f"}`},
	{Read, "a range", `{"path":"f","view_range":[5,14]}`, `{"from":5,"lines":10,"path":"f"}`},
	{Read, "to the end", `{"path":"f","view_range":[5,-1]}`, `{"from":5,"path":"f"}`},
	{Read, "from and to", `{"path":"f","start_line":5,"end_line":14}`, `{"from":5,"lines":10,"path":"f"}`},
	{Read, "a range of words", `{"path":"f","lines":"5-14"}`, `{"from":5,"lines":10,"path":"f"}`},
	{Read, "zero", `{"path":"f","offset":0,"limit":0}`, `{"path":"f"}`},
	{Read, "no whole number", `{"path":"f","from":1.5}`, ""},
	{Read, "one of a list", `{"paths":["f"]}`, `{"path":"f"}`},
	{Read, "several", `{"paths":["f","g"]}`, ""},
	{Run, "a list", `{"command":["bash","-lc","ls | wc"]}`, `{"command":"ls | wc"}`},
	{Run, "words", `{"command":["git","commit","-m","a b"]}`, `{"command":"git commit -m 'a b'"}`},
	{Run, "a list in a text", `{"command":"[\"ls\",\"-l\"]","timeout":5}`, `{"command":"ls -l"}`},
	{Run, "several commands", `{"commands":["ls","pwd"]}`, ""},
	{Run, "operators", `{"command":["ls","|","wc"]}`, ""},
	{Run, "a directory", `{"cmd":"go test ./...","cwd":"sub dir"}`, `{"command":"cd 'sub dir' && go test ./..."}`},
	{Run, "a directory, and more", `{"cmd":"a || b","workdir":"sub"}`, "{\"command\":\"cd sub || exit\\na || b\"}"},
	{Run, "the directory", `{"command":"ls","workdir":".","timeout":120000,"description":"Lists."}`, `{"command":"ls"}`},
	{Run, "in the background", `{"command":"ls","run_in_background":"true"}`, `{"background":true,"command":"ls"}`},
	{Run, "an environment", `{"command":"ls","env":{"A":"b"}}`, ""},
	{Run, "input", `{"command":"cat","stdin":"x"}`, ""},
	{Run, "seconds as a text", `{"command":"ls","seconds":"30"}`, `{"command":"ls","seconds":30}`},
	{Run, "seconds with a point", `{"command":"ls","seconds":"30.0"}`, `{"command":"ls","seconds":30}`},
	{Search, "of Claude Code", `{"pattern":"a","-i":true,"output_mode":"content"}`, `{"pattern":"(?i)a"}`},
	{Search, "a search without case", `{"search":"a","-i":true}`, `{"pattern":"(?i)a"}`},
	{Search, "a text without case", `{"text":"a","case_sensitive":false}`, `{"pattern":"(?i)a"}`},
	{Search, "a group without case", `{"pattern":"(?:a|b)","ignore_case":true}`, `{"pattern":"(?i)(?:a|b)"}`},
	{Search, "a query without case that is no expression", `{"query":"a","regex":false,"-i":true}`, `{"pattern":"(?i)a"}`},
	{Search, "a case that counts", `{"pattern":"a","-i":false,"case_sensitive":true}`, `{"pattern":"a"}`},
	{Search, "a query", `{"query":"a","include":"*.go"}`, `{"glob":"*.go","pattern":"a"}`},
	{Find, "a pattern", `{"pattern":"*.go"}`, `{"glob":"*.go"}`},
	{Job, "a number", `{"job_id":1,"action":"kill"}`, `{"do":"stop","id":"1"}`},
	{Job, "unknown", `{"id":"1","do":"restart"}`, ""},
	{Plan, "of Claude Code", `{"todos":[{"content":"a","status":"in-progress","activeForm":"b"}]}`, `{"steps":[{"status":"in_progress","text":"a"}]}`},
	{Plan, "texts", `{"steps":["a","- [x] b"]}`, `{"steps":[{"status":"pending","text":"a"},{"status":"completed","text":"b"}]}`},
	{Plan, "of Codex", `{"explanation":"x","plan":[{"step":"a","status":"Done"}]}`, `{"steps":[{"status":"completed","text":"a"}]}`},
	{Plan, "no status", `{"steps":[{"text":"a"}]}`, `{"steps":[{"status":"pending","text":"a"}]}`},
	{Plan, "unknown", `{"steps":[{"text":"a","status":"blocked"}]}`, ""},
	{Fetch, "more", `{"url":"https://a","prompt":"What?"}`, `{"url":"https://a"}`},
	{Ask, "objects", `{"questions":[{"question":"Which?","options":[{"label":"a","description":"x"},{"label":"b"}]}]}`, `{"options":["a","b"],"question":"Which?"}`},
	{Ask, "numbers", `{"question":"Which?","options":[1,2]}`, `{"options":["1","2"],"question":"Which?"}`},
	{Ask, "two", `{"questions":[{"question":"a"},{"question":"b"}]}`, ""},
	{Patch, "input", `{"input":"*** Begin Patch"}`, `{"patch":"*** Begin Patch"}`},
	{Patch, "a command", `{"command":["apply_patch","*** Begin Patch"]}`, `{"patch":"*** Begin Patch"}`},
	{Patch, "a text", `"*** Begin Patch\n"`, `{"patch":"*** Begin Patch\n"}`},
	{far, "of a server", `{"list":"[1]","name":null,"own":{"a":1}}`, `{"list":[1],"own":{"a":1}}`},
	{far, "of a server, which has no such word", `{"list":"[1]","size":"x"}`, ""},
	{Patch, "elsewhere", `{"patch":"*** Begin Patch","workdir":"sub"}`, ""},
}

// TestMend: what models write instead of what the schemas say, and what becomes of it.
func TestMend(t *testing.T) {
	for _, tc := range mendCases {
		t.Run(tc.tool.Name+" "+tc.name, func(t *testing.T) {
			r := resolved(t, tc.tool)
			if allows(r, []byte(tc.input)) {
				t.Fatal("nothing is wrong with it")
			}
			got := Mend(tc.tool, json.RawMessage(tc.input))
			if tc.want == "" {
				if allows(r, got) {
					t.Fatalf("it became %s", got)
				}
				why := Wrong(tc.tool, json.RawMessage(tc.input))
				if strings.Contains(why, "reflect") || strings.Contains(why, "\n") {
					t.Errorf("what is wrong with it: %q", why)
				}
				return
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" || !allows(r, got) {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestWrong: what is wrong with an input is said in a line, with how it is written.
func TestWrong(t *testing.T) {
	for _, tc := range []struct {
		tool        Tool
		input, want string
	}{
		{Edit, `{"path":"f"}`, `edits is missing: write {"path":"FILE","edits":[{"old":"TEXT","new":"TEXT"}]}`},
		{Edit, `{"path":"f","edits":[{"old":"a","new":null}]}`, `edits[0].new is null: write `},
		{Edit, `{"path":"f","edits":[{"old":"a"}]}`, `edits[0].new is missing: write `},
		{Edit, `{"path":"f","edits":[]}`, `edits is empty: write `},
		{Edit, `{"path":"f","edits":"x"}`, `edits is the text "x", and no list: write `},
		{Run, `{"command":"a","seconds":0}`, `seconds is 0, which is out of bounds: write `},
		{Run, `{"command":"a","background":"x"}`, `background is the text "x", and no boolean: write `},
		{Job, `{"id":"a","do":"x"}`, `do is "x", not one of read, wait, stop: write `},
		{Plan, `{"steps":[{"text":"a","status":"pending","x":1}]}`, `there is no member steps[0].x: write `},
		{Read, `[]`, `the input is a list: write `},
		{Read, `7`, `the input is a number, and no object: write `},
		{Read, `{`, ""},
	} {
		if got := Wrong(tc.tool, json.RawMessage(tc.input)); !strings.HasPrefix(got, tc.want) || got == "" != (tc.want == "") {
			t.Errorf("%s %s: %q", tc.tool.Name, tc.input, got)
		}
	}
}

// TestMendings: there is a row for each tool, and its example is right.
func TestMendings(t *testing.T) {
	for _, tool := range append(All(), Patch) {
		m := mendings[tool.Name]
		if m == nil {
			t.Errorf("%s: there is nothing", tool.Name)
			continue
		}
		if !allows(resolved(t, tool), []byte(strings.ReplaceAll(m.example, "\n", `\n`))) {
			t.Errorf("%s: the example %s does not fit", tool.Name, m.example)
		}
		if strings.Contains(m.example, "\n") {
			t.Errorf("%s: the example has several lines", tool.Name)
		}
	}
}

// FuzzMend: no input makes it panic; what it returns is JSON if that was, and is not changed
// by it again.
func FuzzMend(f *testing.F) {
	tools := append(All(), Patch)
	for i, seed := range []string{
		`{"file_path":"f","old_string":"a","new_string":"b","edits":null}`, `{"path":"f","edits":"[{\"old\":\"a\"}]"}`, `{"command":["ls","-l"],"cwd":"x"}`,
		`{"steps":["a",{"content":"b","status":"Done"}]}`, `{"input":{"input":"x"}}`, `[[[{"view_range":[1,2]}]]]`, `"*** Begin Patch"`, "{\"a\":\"\n\\",
		`{"questions":[{"question":["a"],"options":[{}]}]}`, `{"from":1e99,"seconds":"1/2"}`,
	} {
		f.Add(i, seed)
	}
	f.Fuzz(func(t *testing.T, n int, input string) {
		tool := tools[uint(n)%uint(len(tools))]
		got := Mend(tool, json.RawMessage(input))
		if json.Valid([]byte(input)) && !json.Valid(got) {
			t.Fatalf("%q", got)
		}
		if allows(resolved(t, tool), got) && string(Mend(tool, got)) == "" {
			t.Fatal("it has become nothing")
		}
		_ = Wrong(tool, json.RawMessage(input))
		if patch, ok := AsPatch(tool, json.RawMessage(input)); ok && !json.Valid(patch) {
			t.Fatalf("%q", patch)
		}
	})
}
