// Command generate writes models.json and models.json.gz, what is known of the models of providers, from the
// data of charm.land/catwalk, which its authors collect from what providers publish.
//
//	go run ./generate -version v0.52.1 -o models.json
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/model/catalog"
)

const module = "charm.land/catwalk"

// providers are those that package catalog knows, by the names of the files.
var providers = []string{"anthropic", "openai", "gemini", "openrouter", "deepseek"}

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
	var all []json.RawMessage
	for _, p := range providers {
		data, err := os.ReadFile(filepath.Join(dir, "internal", "providers", "configs", p+".json"))
		if err != nil {
			return err
		}
		all = append(all, data)
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	made, _, err := catalog.Convert(data, module+" "+version, time.Now())
	if err != nil {
		return err
	}
	licence, err := os.ReadFile(filepath.Join(dir, "LICENSE"))
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(made); err != nil {
		return err
	}
	if err := errors.Join(w.Close(), os.WriteFile(out, made, 0o644), os.WriteFile(out+".gz", packed.Bytes(), 0o644)); err != nil {
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
