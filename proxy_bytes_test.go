package acp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/overlay"
	"github.com/goacp/acp/internal/registry"
	"github.com/goacp/acp/internal/sample"
)

var proxyWays = []string{"in process", "served", "commands"}

// TestProxyBytes holds that what no hook takes arrives as it was sent, but for ids: values of
// every type of the schema as params, results and errors, in both directions.
func TestProxyBytes(t *testing.T) {
	for _, version := range []int{1, 2} {
		samples := proxySamples(t, version)
		for _, n := range []int{0, 1, 3} {
			for _, way := range proxyWays {
				if n == 0 && way != "in process" {
					continue
				}
				t.Run(fmt.Sprintf("v%d/%d %s", version, n, way), func(t *testing.T) {
					r := relayedRig(t, version, n, way)
					for i, s := range samples {
						r.exchange(i, s)
					}
					if err := r.end(); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// proxySamples returns a value of each type.
func proxySamples(t *testing.T, version int) (list []string) {
	t.Helper()
	name := fmt.Sprintf("v%d", version)
	set, err := overlay.Read("schema")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := set.Schema(name + ".unstable.json")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := sample.Load(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, uint64(version)))
	for _, typ := range registry.Names(name) {
		v := schema.Valid(rng, typ)
		for range 20 { // params and errors have to be objects or arrays
			if v[0] == '{' {
				break
			}
			v = schema.Valid(rng, typ)
		}
		// A frame is one line.
		v = bytes.Map(func(r rune) rune {
			if r == '\n' || r == '\r' {
				return ' '
			}
			return r
		}, v)
		list = append(list, string(bytes.TrimSpace(v)))
	}
	return list
}

// proxyMethods are methods whose params may be anything for a proxy without hooks.
var proxyMethods = []string{"session/prompt", "session/set_config_option", "session/load", "_vendor/method", "auth/login"}

// exchange passes a value in every place of a message.
func (r *proxyRig) exchange(i int, value string) {
	r.t.Helper()
	params := value
	if value[0] != '{' && value[0] != '[' {
		params = "[" + value + "]"
	}
	method := proxyMethods[i%len(proxyMethods)]
	id := r.client.call(method, params)
	r.agent.answer(r.agent.expect(method, params), value)
	r.client.response(id, value)

	failure := `{"code":-32055,"message":"\u0041 message","data":` + value + `,"_more":[1.0,` + value + `]}`
	id = r.agent.call("_vendor/question", params)
	r.client.fail(r.client.expect("_vendor/question", params), failure)
	r.agent.errorText(id, failure)

	r.agent.notify("session/update", params)
	r.client.expect("session/update", params)
	r.agent.notify("_vendor/note", params)
	r.client.expect("_vendor/note", params)
	r.client.notify("session/cancel", params)
	r.agent.expect("session/cancel", params)
}

// TestProxyRecordings holds the same for whole conversations.
func TestProxyRecordings(t *testing.T) {
	var files []string
	for _, dir := range []string{"testdata", "acptest/testdata"} {
		found, err := filepath.Glob(filepath.Join(dir, "*.golden"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 10 {
		t.Errorf("there are %d conversations", len(files))
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		version := 1
		if strings.Contains(file, "v2") {
			version = 2
		}
		list := readTranscript(t, data)
		for len(list) > 0 && list[0].method == "initialize" {
			list = list[1:]
		}
		if len(list) < 3 {
			t.Fatalf("%s has %d messages", file, len(list))
		}
		for _, n := range []int{0, 1, 3} {
			for _, way := range proxyWays {
				if n == 0 && way != "in process" {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d %s", filepath.Base(file), n, way), func(t *testing.T) {
					r := relayedRig(t, version, n, way)
					r.play(list)
					if err := r.end(); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}
