package agent

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/model/catalog"
	"github.com/goacp/acp/internal/standin"
)

// TestProviders: a client sets a provider up, for its connection and its open sessions, and
// takes it away again. Its key is sent to that provider and told to nobody.
func TestProviders(t *testing.T) {
	service := standin.New(standin.Options{Strict: true, Script: func(r *standin.Request) standin.Step {
		return standin.Step{Text: []string{"from the ", r.API}}
	}})
	defer service.Close()
	versions(t, func(t *testing.T, v int) {
		models, err := catalog.New(catalog.Settings{Env: func(name string) string {
			return map[string]string{"OLLAMA_HOST": "127.0.0.1:1", "LLAMACPP_BASE_URL": "http://127.0.0.1:1", "LMSTUDIO_BASE_URL": "http://127.0.0.1:1", "VLLM_BASE_URL": "http://127.0.0.1:1"}[name]
		}})
		if err != nil {
			t.Fatal(err)
		}
		k := start(t, v, func(k *talk) { k.shelf = models })
		find := func(id acp.ProviderID) acp.ProviderInfo {
			t.Helper()
			all, err := k.conn.Providers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(all, func(p acp.ProviderInfo) bool { return p.ProviderID == id })
			if i < 0 {
				t.Fatalf("%v has no %s", all, id)
			}
			return all[i]
		}
		if p := find("anthropic"); p.Current != nil || !slices.Equal(p.Supported, []acpv2.LLMProtocol{acpv2.LLMProtocolAnthropic}) {
			t.Errorf("%+v", p)
		}
		contains(t, k.tell("hi"), "no language model")
		set := func(id acp.ProviderID, api acpv2.LLMProtocol, url string) error {
			return k.conn.SetProvider(t.Context(), &acp.ProviderSetting{ProviderID: id, APIType: api, BaseURL: url, Headers: map[string]string{"X-Api-Key": "secret-of-a-client"}})
		}
		for _, bad := range []error{set("nobody", "openai", service.URL), set("anthropic", "odd", service.URL), set("anthropic", "anthropic", "lab")} {
			if bad == nil || strings.Contains(bad.Error(), "secret") {
				t.Errorf("%v", bad)
			}
		}
		if err := set("anthropic", "anthropic", service.URL); err != nil {
			t.Fatal(err)
		}
		if p := find("anthropic"); p.Current == nil || p.Current.BaseURL != service.URL {
			t.Errorf("%+v", p)
		}
		contains(t, k.tell("hi"), "from the messages")
		if m := value(k.session, optionModel); m != "anthropic/claude-sonnet-5" {
			t.Errorf("the model is %q", m)
		}
		if err := set("openai", "openai", service.URL+"/v1"); err != nil {
			t.Fatal(err)
		}
		if err := k.conn.DisableProvider(t.Context(), "anthropic"); err != nil {
			t.Fatal(err)
		}
		contains(t, k.tell("hi"), "from the responses")
		if p := find("anthropic"); p.Current != nil {
			t.Errorf("%+v", p)
		}
		if err := k.conn.DisableProvider(t.Context(), "openai"); err != nil {
			t.Fatal(err)
		}
		contains(t, k.tell("hi"), "no language model")

		// Another connection has what the settings say.
		k.connect()
		if p := find("openai"); p.Current != nil {
			t.Errorf("%+v", p)
		}
	})
	if len(service.Faults()) > 0 {
		t.Errorf("%v", service.Faults())
	}
}

// TestKey: /key asks for a key in a form; it is sent to its provider, kept nowhere, and
// what is typed in its place is not taken for one.
func TestKey(t *testing.T) {
	var mu sync.Mutex // servers are looked for at once
	var keys []string
	service := standin.New(standin.Options{Script: func(r *standin.Request) standin.Step {
		return standin.Step{Text: []string{"from the ", r.API}}
	}})
	web := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		keys = append(keys, r.URL.Path+" "+r.Header.Get("X-Api-Key")+r.Header.Get("Authorization"))
		mu.Unlock()
		return http.DefaultTransport.RoundTrip(r)
	})}
	defer service.Close()
	for _, tc := range []struct{ name, said, provider, want string }{
		{"named", "/key anthropic", "", "/v1/messages secret-of-mine"},
		{"chosen", "/key", "openai", "/v1/responses Bearer secret-of-mine"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mu.Lock()
			keys = nil
			mu.Unlock()
			models, err := catalog.New(catalog.Settings{HTTP: web, Env: func(name string) string {
				return map[string]string{
					"OLLAMA_HOST": "127.0.0.1:1", "LLAMACPP_BASE_URL": "http://127.0.0.1:1", "LMSTUDIO_BASE_URL": "http://127.0.0.1:1", "VLLM_BASE_URL": "http://127.0.0.1:1",
					"ANTHROPIC_BASE_URL": service.URL, "OPENAI_BASE_URL": service.URL + "/v1",
				}[name]
			}})
			if err != nil {
				t.Fatal(err)
			}
			answer := acp.DeclineElicitation()
			k := start(t, 2, func(k *talk) {
				k.shelf = models
				k.client.Elicit = func(_ context.Context, r *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
					for _, p := range r.Form.Properties {
						s, ok := p.Schema.(*acpv2.StringPropertySchema)
						if p.Name == fieldKey && (!ok || s.Format != "password") {
							t.Errorf("%+v", p.Schema)
						}
					}
					return answer, nil
				}
			})
			contains(t, k.tell("hi"), "no language model", "`/key` asks")
			contains(t, k.tell("/key anthropic sk-1"), "Only the name of a provider may follow")
			contains(t, k.tell("/key nobody"), "There is no provider", "anthropic, openai")
			contains(t, k.tell(tc.said), "Nothing was changed.")
			answer = acp.AcceptElicitation(map[string]json.RawMessage{fieldKey: json.RawMessage(`" "`)})
			contains(t, k.tell(tc.said), "The key is empty")
			answer = acp.AcceptElicitation(map[string]json.RawMessage{fieldKey: json.RawMessage(`"secret-of-mine"`), fieldProvider: json.RawMessage(`"` + tc.provider + `"`)})
			contains(t, k.tell(tc.said), "is kept in memory", "This session uses")
			contains(t, k.tell("hi"), "from the ")
			mu.Lock()
			defer mu.Unlock()
			keys = slices.DeleteFunc(keys, func(k string) bool { return strings.HasSuffix(k, " ") }) // looking for servers
			if !slices.Equal(keys, []string{tc.want}) {
				t.Errorf("%q", keys)
			}
			_ = filepath.WalkDir(k.dir, func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					if data, err := os.ReadFile(path); err != nil || strings.Contains(string(data), "secret-of-mine") {
						t.Errorf("%s has the key, or %v", path, err)
					}
				}
				return nil
			})
		})
	}
	k := start(t, 1, func(k *talk) { k.shelf, _ = catalog.New(catalog.Settings{Env: func(string) string { return "" }}) })
	contains(t, k.tell("/key anthropic"), "Your client has no forms")
	k = start(t, 1)
	contains(t, k.tell("/key"), "no provider that needs a key")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
