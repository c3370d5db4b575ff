// Command lexers writes lexers.packed, the languages that package view colours, from package
// lexers of chroma. The program does not link that package, because it reads the languages
// before main in every process, and holds them uncompressed. See ADR 0031.
package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"

	"github.com/goacp/acp/internal/packed"
)

func main() {
	log.SetFlags(0)
	files, left, err := languages()
	if err != nil {
		log.Fatal(err)
	}
	texts := map[string]string{}
	for name, data := range files {
		texts[name] = string(data)
	}
	data, err := packed.Pack(texts, string(dictionary(files)))
	if err == nil {
		err = os.WriteFile("lexers.packed", data, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d languages, %d bytes; left out: %s\n", len(files)-1, len(data), strings.Join(left, ", "))
}

// nested are languages that are written within HTML. They are coloured as HTML.
var nested = map[string]bool{"ERB": true, "Svelte": true, "PHTML": true}

// languages returns the languages as files, and the names of those that cannot be written as one.
func languages() (files map[string][]byte, left []string, err error) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/alecthomas/chroma/v2").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	dir := strings.TrimSpace(string(module))
	files = map[string][]byte{}
	if files["LICENSE"], err = os.ReadFile(filepath.Join(dir, "COPYING")); err != nil {
		return nil, nil, err
	}
	has := map[string]bool{}
	embedded := filepath.Join(dir, "lexers", "embedded")
	entries, err := os.ReadDir(embedded)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		l, err := chroma.NewXMLLexer(os.DirFS(embedded), e.Name())
		if err != nil {
			return nil, nil, err
		}
		has[l.Config().Name] = true
		if files[e.Name()], err = os.ReadFile(filepath.Join(embedded, e.Name())); err != nil {
			return nil, nil, err
		}
	}
	html, err := chroma.NewXMLLexer(os.DirFS(embedded), "html.xml")
	if err != nil {
		return nil, nil, err
	}
	for _, l := range lexers.GlobalLexerRegistry.Lexers {
		config := *l.Config()
		of := l
		switch {
		case nested[config.Name]:
			of = html
		case has[config.Name]:
			continue
		}
		data, err := written(&config, of)
		if errors.Is(err, chroma.ErrNotSerialisable) {
			left = append(left, config.Name)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		files[strings.ToLower(strings.ReplaceAll(config.Name, " ", "_"))+".xml"] = data
	}
	for name, data := range files {
		if strings.HasSuffix(name, ".xml") {
			files[name] = blanks.ReplaceAll(data, []byte("><"))
		}
	}
	slices.Sort(left)
	return files, left, nil
}

// blanks are what stands between two elements, which says nothing.
var blanks = regexp.MustCompile(`>\s+<`)

// written returns a language that is written in Go as a file. What one of its rules computes becomes a string.
func written(config *chroma.Config, l chroma.Lexer) ([]byte, error) {
	regex, ok := l.(*chroma.RegexLexer)
	if !ok {
		// A lexer that does more around another one.
		inner := reflect.Indirect(reflect.ValueOf(l)).FieldByName("Lexer")
		if !inner.IsValid() {
			return nil, chroma.ErrNotSerialisable
		}
		if regex, ok = inner.Interface().(*chroma.RegexLexer); !ok {
			return nil, chroma.ErrNotSerialisable
		}
	}
	rules, err := regex.Rules()
	if err != nil {
		return nil, err
	}
	rules = maps.Clone(rules)
	for state, list := range rules {
		list = slices.Clone(list)
		for i, rule := range list {
			if _, err := xml.Marshal(rule); errors.Is(err, chroma.ErrNotSerialisable) {
				list[i].Type = chroma.LiteralString
			}
		}
		rules[state] = list
	}
	plain, err := chroma.NewLexer(config, func() chroma.Rules { return rules })
	if err != nil {
		return nil, err
	}
	data, err := chroma.Marshal(plain)
	if err != nil {
		return nil, err
	}
	again, err := chroma.Unmarshal(data)
	if err != nil {
		return nil, err
	}
	if _, err := again.Tokenise(nil, ""); err != nil {
		return nil, fmt.Errorf("%w: %w", chroma.ErrNotSerialisable, err)
	}
	return sorted(data), nil
}

// sorted brings the states of a language into order, which has none.
func sorted(data []byte) []byte {
	const begin, end = "    <state ", "    </state>\n"
	first, last := bytes.Index(data, []byte(begin)), bytes.LastIndex(data, []byte(end))
	states := strings.SplitAfter(string(data[first:last+len(end)]), end)
	slices.Sort(states)
	return slices.Concat(data[:first], []byte(strings.Join(states, "")), data[last+len(end):])
}

// dictionary returns what files have in common, by which they become a fifth smaller: some of average size.
func dictionary(files map[string][]byte) (dict []byte) {
	names := slices.Sorted(maps.Keys(files))
	slices.SortStableFunc(names, func(a, b string) int {
		far := func(name string) int { return max(len(files[name])-5000, 5000-len(files[name])) }
		return far(a) - far(b)
	})
	const most = 32 << 10 // more is not used
	for _, name := range names[:8] {
		dict = append(dict, files[name]...)
	}
	return dict[max(0, len(dict)-most):]
}
