package acp

import (
	"context"

	"github.com/goacp/acp/acpv2"
)

// authMethods are the methods to advertise. Those that run in a terminal are only
// advertised to clients that support them.
func (c *AgentConn) authMethods() []AuthMethod {
	caps := c.Capabilities()
	terminal := caps.Auth != nil && caps.Auth.Terminal != nil
	var out []AuthMethod
	for _, m := range c.agent.Load().AuthMethods {
		if _, ok := m.(*AuthMethodTerminal); ok && !terminal {
			continue
		}
		out = append(out, m)
	}
	return out
}

func authMethodID(m AuthMethod) AuthMethodID {
	switch m := m.(type) {
	case *AuthMethodAgent:
		return m.MethodID
	case *AuthMethodTerminal:
		return m.MethodID
	case *acpv2.UnknownAuthMethod:
		return m.MethodID
	}
	return ""
}

func (c *AgentConn) login(ctx context.Context, id AuthMethodID) error {
	a := c.agent.Load()
	if a.Login == nil {
		return notFound(ctx)
	}
	for _, m := range c.authMethods() {
		if authMethodID(m) == id {
			return c.guard("Login", func() error { return a.Login(ctx, c, id) })
		}
	}
	return invalidParams("methodId", "no such method")
}

func (c *AgentConn) logout(ctx context.Context) error {
	a := c.agent.Load()
	if a.Logout == nil {
		return notFound(ctx)
	}
	return c.guard("Logout", func() error { return a.Logout(ctx, c) })
}

func (c *AgentConn) authStatus(ctx context.Context) (status *AuthStatus, err error) {
	a := c.agent.Load()
	if a.AuthStatus == nil {
		return nil, notFound(ctx)
	}
	err = c.guard("AuthStatus", func() error {
		status, err = a.AuthStatus(ctx, c)
		return err
	})
	if status == nil && err == nil {
		status = &AuthStatus{State: AuthStateUnknown}
	}
	return status, err
}

func (c *AgentConn) listProviders(ctx context.Context) (res *acpv2.ListProvidersResponse, err error) {
	a := c.agent.Load()
	if a.ListProviders == nil {
		return nil, notFound(ctx)
	}
	res = new(acpv2.ListProvidersResponse)
	err = c.guard("ListProviders", func() error {
		res.Providers, err = a.ListProviders(ctx, c)
		return err
	})
	return res, err
}

func (c *AgentConn) setProvider(ctx context.Context, p *ProviderSetting) error {
	a := c.agent.Load()
	if a.SetProvider == nil {
		return notFound(ctx)
	}
	return c.guard("SetProvider", func() error { return a.SetProvider(ctx, c, p) })
}

func (c *AgentConn) disableProvider(ctx context.Context, id ProviderID) error {
	a := c.agent.Load()
	if a.DisableProvider == nil {
		return notFound(ctx)
	}
	return c.guard("DisableProvider", func() error { return a.DisableProvider(ctx, c, id) })
}
