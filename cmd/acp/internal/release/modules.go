package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
)

// modules returns variables with which the go command, outside of any module, fetches the modules of
// this repository from the tags of c by the way that leads users to GitHub: as git repositories, so
// that the files and the sums are those that everybody gets. Other modules come from the user's cache
// or as they otherwise would. What is fetched is kept in cache.
func (c clone) modules(ctx context.Context, cache string) ([]string, error) {
	out, err := command(ctx, c.dir, nil, "go", "env", "-json",
		"GOCACHE", "GOMODCACHE", "GONOPROXY", "GONOSUMDB", "GOPROXY", "GOSUMDB")
	if err != nil {
		return nil, err
	}
	var env struct{ GOCACHE, GOMODCACHE, GONOPROXY, GONOSUMDB, GOPROXY, GOSUMDB string }
	if err := json.Unmarshal([]byte(out), &env); err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(os.Getenv("GIT_CONFIG_COUNT")) // none is 0
	i := strconv.Itoa(n)
	return []string{
		"GOENV=off", "GOWORK=off", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local",
		"GOCACHE=" + env.GOCACHE, "GOMODCACHE=" + cache, "GOSUMDB=" + env.GOSUMDB,
		"GOPROXY=file://" + filepath.ToSlash(filepath.Join(env.GOMODCACHE, "cache", "download")) + "," + env.GOPROXY,
		"GOPRIVATE=" + root, "GONOPROXY=" + root + "," + env.GONOPROXY, "GONOSUMDB=" + root + "," + env.GONOSUMDB,
		"GIT_CONFIG_COUNT=" + strconv.Itoa(n+1),
		"GIT_CONFIG_KEY_" + i + "=url." + c.dir + ".insteadOf", "GIT_CONFIG_VALUE_" + i + "=https://" + root,
	}, nil
}
