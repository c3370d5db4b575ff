// Command generate writes models.json, what is known of the models of providers, from the
// data of charm.land/catwalk, which its authors collect from what providers publish.
//
//	go run ./generate -version v0.52.1 -o models.json
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const module = "charm.land/catwalk"

// providers are those that package catalog knows, by the names of the files.
var providers = []string{"anthropic", "openai", "gemini", "openrouter", "deepseek"}

// A source is a file of the data.
type source struct {
	Models []struct {
		ID      string   `json:"id"`
		Name    string   `json:"name"`
		In      float64  `json:"cost_per_1m_in"`
		Out     float64  `json:"cost_per_1m_out"`
		Write   float64  `json:"cost_per_1m_in_cached"`
		Read    float64  `json:"cost_per_1m_out_cached"`
		Context int      `json:"context_window"`
		Output  int      `json:"default_max_tokens"`
		Levels  []string `json:"reasoning_levels"`
		Reasons bool     `json:"can_reason"`
		Images  bool     `json:"supports_attachments"`
	} `json:"models"`
}

// A model is a line of models.json. Prices are in US dollars for a million tokens: read,
// written, read from a cache, put into a cache.
type model struct {
	ID      string     `json:"id"`
	Name    string     `json:"name,omitempty"`
	Context int        `json:"context,omitempty"`
	Output  int        `json:"output,omitempty"`
	Images  bool       `json:"images,omitempty"`
	Reasons bool       `json:"reasons,omitempty"`
	Efforts []string   `json:"efforts,omitempty"`
	Price   [4]float64 `json:"price"`
}

func main() {
	log.SetFlags(0)
	version := flag.String("version", "v0.52.1", "`version` of "+module)
	out := flag.String("o", "models.json", "`file` to write")
	flag.Parse()
	if err := run(*version, *out); err != nil {
		log.Fatal(err)
	}
}

func run(version, out string) error {
	dir, err := download(version)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"source\":%q,\"licence\":\"MIT, see models.LICENSE\",\"date\":%q,\"providers\":{", module+" "+version, time.Now().UTC().Format(time.DateOnly))
	for i, p := range providers {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n%q:[", p)
		models, err := read(filepath.Join(dir, "internal", "providers", "configs", p+".json"))
		if err != nil {
			return err
		}
		for j, m := range models {
			if j > 0 {
				b.WriteByte(',')
			}
			line, err := json.Marshal(m)
			if err != nil {
				return err
			}
			b.WriteByte('\n')
			b.Write(line)
		}
		b.WriteString("\n]")
	}
	b.WriteString("\n}}\n")
	licence, err := os.ReadFile(filepath.Join(dir, "LICENSE"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(filepath.Dir(out), "models.LICENSE"), licence, 0o644)
}

// download returns the directory of a version of the module.
func download(version string) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", module+"@"+version)
	cmd.Dir, cmd.Stderr = os.TempDir(), os.Stderr // outside of any module
	data, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("download %s: %w", module, err)
	}
	var got struct{ Dir string }
	if err := json.Unmarshal(data, &got); err != nil {
		return "", err
	}
	return got.Dir, nil
}

// read returns the models of a provider, sorted.
func read(file string) ([]model, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var s source
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var all []model
	for _, m := range s.Models {
		all = append(all, model{m.ID, m.Name, m.Context, m.Output, m.Images, m.Reasons, m.Levels, [4]float64{m.In, m.Out, m.Read, m.Write}})
	}
	slices.SortFunc(all, func(a, b model) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}
