package translate

import (
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// ProvidersFromV1 converts the answer to providers/list.
func ProvidersFromV1(r acpv1.ListProvidersResponse) acpv2.ListProvidersResponse {
	return acpv2.ListProvidersResponse{Providers: each(r.Providers, ProviderFromV1), Meta: r.Meta, Unknown: r.Unknown}
}

// ProvidersToV1 converts the answer to providers/list.
func ProvidersToV1(r acpv2.ListProvidersResponse) acpv1.ListProvidersResponse {
	return acpv1.ListProvidersResponse{Providers: each(r.Providers, ProviderToV1), Meta: r.Meta, Unknown: r.Unknown}
}

// ProviderFromV1 converts the description of one provider.
func ProviderFromV1(p acpv1.ProviderInfo) acpv2.ProviderInfo {
	v := acpv2.ProviderInfo{ProviderID: acpv2.ProviderID(p.ProviderID), Supported: each(p.Supported, text[acpv2.LLMProtocol]),
		Required: p.Required, Meta: p.Meta, Unknown: p.Unknown}
	if c := p.Current; c != nil {
		v.Current = &acpv2.ProviderCurrentConfig{APIType: acpv2.LLMProtocol(c.APIType), BaseURL: c.BaseURL, Meta: c.Meta, Unknown: c.Unknown}
	}
	return v
}

// ProviderToV1 converts the description of one provider.
func ProviderToV1(p acpv2.ProviderInfo) acpv1.ProviderInfo {
	v := acpv1.ProviderInfo{ProviderID: acpv1.ProviderID(p.ProviderID), Supported: each(p.Supported, text[acpv1.LLMProtocol]),
		Required: p.Required, Meta: p.Meta, Unknown: p.Unknown}
	if c := p.Current; c != nil {
		v.Current = &acpv1.ProviderCurrentConfig{APIType: acpv1.LLMProtocol(c.APIType), BaseURL: c.BaseURL, Meta: c.Meta, Unknown: c.Unknown}
	}
	return v
}

// SetProviderFromV1 converts the request providers/set.
func SetProviderFromV1(r acpv1.SetProviderRequest) acpv2.SetProviderRequest {
	return acpv2.SetProviderRequest{ProviderID: acpv2.ProviderID(r.ProviderID), APIType: acpv2.LLMProtocol(r.APIType),
		BaseURL: r.BaseURL, Headers: r.Headers, Meta: r.Meta, Unknown: r.Unknown}
}

// SetProviderToV1 converts the request providers/set.
func SetProviderToV1(r acpv2.SetProviderRequest) acpv1.SetProviderRequest {
	return acpv1.SetProviderRequest{ProviderID: acpv1.ProviderID(r.ProviderID), APIType: acpv1.LLMProtocol(r.APIType),
		BaseURL: r.BaseURL, Headers: r.Headers, Meta: r.Meta, Unknown: r.Unknown}
}

// DisableProviderFromV1 converts the request providers/disable.
func DisableProviderFromV1(r acpv1.DisableProviderRequest) acpv2.DisableProviderRequest {
	return acpv2.DisableProviderRequest{ProviderID: acpv2.ProviderID(r.ProviderID), Meta: r.Meta, Unknown: r.Unknown}
}

// DisableProviderToV1 converts the request providers/disable.
func DisableProviderToV1(r acpv2.DisableProviderRequest) acpv1.DisableProviderRequest {
	return acpv1.DisableProviderRequest{ProviderID: acpv1.ProviderID(r.ProviderID), Meta: r.Meta, Unknown: r.Unknown}
}
