package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/jsonrpc"
)

// modelsOf returns the models of a connection: those of the settings, unless its client has
// set providers up in another way. What it has said is kept in memory only.
func (b *builtin) modelsOf(c *acp.AgentConn) model.Source {
	b.mu.Lock()
	defer b.mu.Unlock()
	if own := b.own[c]; own != nil {
		return own
	}
	return b.models
}

// listProviders is the hook of that name.
func (b *builtin) listProviders(_ context.Context, c *acp.AgentConn) ([]acp.ProviderInfo, error) {
	var all []acp.ProviderInfo
	for _, s := range b.modelsOf(c).Services() {
		p := acp.ProviderInfo{ProviderID: acp.ProviderID(s.Name)}
		for _, api := range s.Speaks {
			p.Supported = append(p.Supported, acpv2.LLMProtocol(api))
		}
		if s.Enabled && len(s.Speaks) > 0 {
			p.Current = &acpv2.ProviderCurrentConfig{APIType: p.Supported[0], BaseURL: s.URL}
		}
		all = append(all, p)
	}
	return all, nil
}

// setProvider is the hook of that name.
func (b *builtin) setProvider(_ context.Context, c *acp.AgentConn, p *acp.ProviderSetting) error {
	return b.provide(c, model.Service{
		Name: string(p.ProviderID), Speaks: []string{string(p.APIType)}, URL: p.BaseURL, Header: p.Headers, Enabled: true,
	})
}

// disableProvider is the hook of that name.
func (b *builtin) disableProvider(_ context.Context, c *acp.AgentConn, id acp.ProviderID) error {
	return b.provide(c, model.Service{Name: string(id)})
}

// provide sets a provider up for a connection, and for its sessions that are open.
func (b *builtin) provide(c *acp.AgentConn, s model.Service) error {
	if !slices.ContainsFunc(b.modelsOf(c).Services(), func(have model.Service) bool { return have.Name == s.Name }) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no provider %q", s.Name)
	}
	models, err := b.modelsOf(c).With(s)
	if err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
	}
	b.mu.Lock()
	if b.own == nil {
		b.own = map[*acp.AgentConn]model.Source{}
	}
	if b.own[c] == nil {
		go func() {
			<-c.Done()
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(b.own, c)
		}()
	}
	b.own[c] = models
	b.mu.Unlock()
	for _, open := range c.OpenSessions() {
		v, ok := open.Value.(*session)
		if !ok {
			continue
		}
		v.mu.Lock()
		uses := v.choice.model == nil || strings.HasPrefix(v.choice.ref, s.Name+"/")
		if uses {
			v.choice.model = nil
		}
		v.mu.Unlock()
		if !uses {
			continue
		}
		v.choose(open.Context(), false)
		if err := open.SetOptions(v.options()...); err != nil {
			return fmt.Errorf("set the options of a session: %w", err)
		}
	}
	return nil
}
