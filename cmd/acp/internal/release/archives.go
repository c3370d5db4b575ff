package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	xmodule "golang.org/x/mod/module"
)

// platforms are those that have archives.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// archives writes an archive for each platform into dir, and SHA256SUMS for all of them. The programs
// are what go install makes of the tagged modules, not of the checkout: with the same version of Go
// and the same flags everybody gets the same bytes.
func archives(ctx context.Context, c clone, version, dir string, on []string) error {
	if len(on) == 0 {
		on = platforms
	}
	for _, p := range on {
		if !slices.Contains(platforms, p) {
			return fmt.Errorf("%w: there is no archive for %s, but for %s", errUsage, p, strings.Join(platforms, ", "))
		}
	}
	seconds, err := c.git(ctx, "log", "-1", "--format=%ct", "refs/tags/"+published[2].tag(version))
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "acp-archives-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	b := builder{version: version, path: temp}
	if b.env, err = c.modules(ctx, b.cache()); err != nil {
		return err
	}
	shared, err := b.shared(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, p := range on {
		name, data, err := b.archive(ctx, p, shared, time.Unix(at, 0).UTC())
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), name)
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// A builder builds the program of a version.
type builder struct {
	version string
	path    string // GOPATH, which is empty at first
	env     []string
}

func (b builder) cache() string { return filepath.Join(b.path, "pkg", "mod") }

// install builds the program for a platform and returns its file.
func (b builder) install(ctx context.Context, platform string) (string, error) {
	goos, goarch, _ := strings.Cut(platform, "/")
	// What changes programs and users may have set is set to what is usual.
	env := slices.Concat(b.env, []string{
		"GOPATH=" + b.path, "GOBIN=", "GOOS=" + goos, "GOARCH=" + goarch, "CGO_ENABLED=0",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=off",
	})
	program := published[2].path
	_, err := command(ctx, b.path, env, "go", "install", "-trimpath", "-ldflags=-s -w", program+"@"+b.version)
	if err != nil {
		return "", err
	}
	bin := filepath.Join(b.path, "bin")
	if platform != runtime.GOOS+"/"+runtime.GOARCH {
		bin = filepath.Join(bin, goos+"_"+goarch)
	}
	return filepath.Join(bin, executable(goos)), nil
}

func executable(goos string) string {
	if goos == "windows" {
		return "acp.exe"
	}
	return "acp"
}

// A file is one of an archive.
type file struct {
	data []byte
	mode fs.FileMode
}

// completions are the scripts of the shells, called as each shell looks for them.
var completions = map[string]string{"bash": "acp.bash", "zsh": "_acp", "fish": "acp.fish", "powershell": "acp.ps1"}

// shared returns what the archives of all platforms have. The program itself writes most of it, for
// which it is built for the machine at hand.
func (b builder) shared(ctx context.Context) (map[string]file, error) {
	acp, err := b.install(ctx, runtime.GOOS+"/"+runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	// No settings of the user have a say.
	home := filepath.Join(b.path, "home")
	env := []string{"HOME=" + home, "USERPROFILE=" + home, "APPDATA=" + home, "LOCALAPPDATA=" + home,
		"XDG_CONFIG_HOME=" + home, "XDG_DATA_HOME=" + home, "XDG_STATE_HOME=" + home, "XDG_CACHE_HOME=" + home}
	out := map[string]file{}
	for shell, name := range completions {
		script, err := command(ctx, b.path, env, acp, "completion", shell)
		if err != nil {
			return nil, err
		}
		out["completions/"+name] = file{[]byte(script + "\n"), 0o644}
	}
	man := filepath.Join(b.path, "man")
	if _, err := command(ctx, b.path, env, acp, "docs", "man", man); err != nil {
		return nil, err
	}
	source := filepath.Join(b.cache(), filepath.FromSlash(root)+"@"+b.version)
	for name, from := range map[string]string{
		"LICENSE": "LICENSE", "README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md", "INSTALL.md": "docs/install.md",
	} {
		data, err := os.ReadFile(filepath.Join(source, from))
		if err != nil {
			return nil, err
		}
		out[name] = file{absolute(data, b.version, path.Dir(from)), 0o644}
	}
	pages, err := os.ReadDir(man)
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		data, err := os.ReadFile(filepath.Join(man, page.Name()))
		if err != nil {
			return nil, err
		}
		out["man/man1/"+page.Name()] = file{data, 0o644}
	}
	return out, nil
}

// relative matches a link of Markdown to a file of the repository.
var relative = regexp.MustCompile(`\]\(([^):#]+)(#[^)]*)?\)`)

// absolute returns a document of a directory of the repository, for readers who do not have the rest.
func absolute(document []byte, version, dir string) []byte {
	return relative.ReplaceAllFunc(document, func(link []byte) []byte {
		m := relative.FindSubmatch(link)
		return fmt.Appendf(nil, "](https://%s/blob/%s/%s%s)", root, version, path.Join(dir, string(m[1])), m[2])
	})
}

// archive returns the archive for a platform, and its name.
func (b builder) archive(ctx context.Context, platform string, shared map[string]file, at time.Time) (
	name string, data []byte, err error,
) {
	goos, goarch, _ := strings.Cut(platform, "/")
	acp, err := b.install(ctx, platform)
	if err != nil {
		return "", nil, err
	}
	program, err := os.ReadFile(acp)
	if err != nil {
		return "", nil, err
	}
	licences, err := b.licences(ctx, acp)
	if err != nil {
		return "", nil, err
	}
	files := maps.Clone(shared)
	files[executable(goos)] = file{program, 0o755}
	files["THIRD_PARTY_LICENSES"] = file{licences, 0o644}
	name = strings.Join([]string{"acp", strings.TrimPrefix(b.version, "v"), goos, goarch}, "_")
	if goos == "windows" {
		data, err = zipped(name, files, at)
		return name + ".zip", data, err
	}
	data, err = tarred(name, files, at)
	return name + ".tar.gz", data, err
}

// notice matches the files whose text has to be passed on with a program.
var notice = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)`)

// embedded are the parts of the program that are not modules, and the files of its module with their
// licences.
var embedded = [][2]string{
	{"The page of acp serve", "internal/web/assets/licences.txt"},
	{"The list of models", "internal/model/catalog/models.LICENSE"},
}

// licences returns the licences of what a program consists of beside this repository, as the program
// itself says it.
func (b builder) licences(ctx context.Context, acp string) ([]byte, error) {
	info, err := buildinfo.ReadFile(acp)
	if err != nil {
		return nil, err
	}
	goroot, err := command(ctx, b.path, b.env, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var out []byte
	add := func(title, file string) error {
		text, err := os.ReadFile(file)
		out = fmt.Appendf(out, "%s\n%s\n\n%s\n\n\n", title, strings.Repeat("=", len(title)), strings.TrimSpace(string(text)))
		return err
	}
	if err := add("Go, "+info.GoVersion, filepath.Join(goroot, "LICENSE")); err != nil {
		return nil, err
	}
	program := filepath.Join(b.cache(), filepath.FromSlash(published[2].path)+"@"+b.version)
	for _, e := range embedded {
		if err := add(e[0], filepath.Join(program, filepath.FromSlash(e[1]))); err != nil {
			return nil, err
		}
	}
	for _, m := range info.Deps {
		if m.Path == root || strings.HasPrefix(m.Path, root+"/") {
			continue
		}
		escaped, err := xmodule.EscapePath(m.Path)
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(b.cache(), filepath.FromSlash(escaped)+"@"+m.Version)
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		found := false
		for _, e := range entries {
			if !e.Type().IsRegular() || !notice.MatchString(e.Name()) || path.Ext(e.Name()) == ".go" {
				continue
			}
			found = true
			if err := add(m.Path+" "+m.Version+", "+e.Name(), filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
		}
		if !found {
			return nil, fmt.Errorf("module %s %s has no licence", m.Path, m.Version)
		}
	}
	return out, nil
}
