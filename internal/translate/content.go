package translate

import (
	"math"
	"strings"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/skills"
)

// BlocksFromV1 converts a list of content blocks.
func BlocksFromV1(list []acpv1.ContentBlock) []acpv2.ContentBlock {
	return each(list, ContentFromV1)
}

// BlocksToV1 converts a list of content blocks.
func BlocksToV1(list []acpv2.ContentBlock) []acpv1.ContentBlock {
	return each(list, ContentToV1)
}

// ContentFromV1 converts one content block; nil stays nil. A priority outside
// 0 to 1 and a negative size, which version 2 does not allow, are left out.
func ContentFromV1(b acpv1.ContentBlock) acpv2.ContentBlock {
	switch b := b.(type) {
	case *acpv1.TextContent:
		return textFromV1(b)
	case *acpv1.ImageContent:
		return &acpv2.ImageContent{Data: b.Data, MIMEType: b.MIMEType, URI: b.URI,
			Annotations: annotationsFromV1(b.Annotations), Meta: b.Meta, Unknown: b.Unknown}
	case *acpv1.AudioContent:
		return &acpv2.AudioContent{Data: b.Data, MIMEType: b.MIMEType,
			Annotations: annotationsFromV1(b.Annotations), Meta: b.Meta, Unknown: b.Unknown}
	case *acpv1.ResourceLink:
		v := &acpv2.ResourceLink{Name: b.Name, URI: b.URI, Title: b.Title, Description: b.Description, MIMEType: b.MIMEType,
			Annotations: annotationsFromV1(b.Annotations), Meta: b.Meta, Unknown: without(b.Unknown, "icons")}
		if b.Size != nil && *b.Size >= 0 {
			v.Size = new(uint64(*b.Size))
		}
		return v
	case *acpv1.EmbeddedResource:
		return &acpv2.EmbeddedResource{Resource: resourceFromV1(b.Resource),
			Annotations: annotationsFromV1(b.Annotations), Meta: b.Meta, Unknown: b.Unknown}
	case *acpv1.UnknownContentBlock:
		return &acpv2.UnknownContentBlock{Type: b.Type, Raw: b.Raw}
	}
	return nil
}

// textFromV1 is apart because it is what nearly every update holds.
func textFromV1(b *acpv1.TextContent) *acpv2.TextContent {
	return &acpv2.TextContent{Text: b.Text, Annotations: annotationsFromV1(b.Annotations), Meta: b.Meta, Unknown: b.Unknown}
}

// ContentToV1 converts one content block; nil stays nil. The icons of a
// resource link, and a size beyond 63 bits, have no form in version 1. A skill
// becomes the text of a command, which is what version 1 lists skills as.
func ContentToV1(b acpv2.ContentBlock) acpv1.ContentBlock {
	switch b := b.(type) {
	case *acpv2.TextContent:
		return textToV1(b)
	case *acpv2.ImageContent:
		return &acpv1.ImageContent{Data: b.Data, MIMEType: b.MIMEType, URI: b.URI,
			Annotations: annotationsToV1(b.Annotations), Meta: b.Meta, Unknown: b.Unknown}
	case *acpv2.AudioContent:
		return &acpv1.AudioContent{Data: b.Data, MIMEType: b.MIMEType,
			Annotations: annotationsToV1(b.Annotations), Meta: b.Meta, Unknown: b.Unknown}
	case *acpv2.ResourceLink:
		v := &acpv1.ResourceLink{Name: b.Name, URI: b.URI, Title: b.Title, Description: b.Description, MIMEType: b.MIMEType,
			Annotations: annotationsToV1(b.Annotations), Meta: b.Meta, Unknown: b.Unknown}
		if b.Size != nil && *b.Size <= math.MaxInt64 {
			v.Size = new(int64(*b.Size))
		}
		return v
	case *acpv2.EmbeddedResource:
		return &acpv1.EmbeddedResource{Resource: resourceToV1(b.Resource),
			Annotations: annotationsToV1(b.Annotations), Meta: b.Meta, Unknown: b.Unknown}
	case *acpv2.SkillReference:
		return &acpv1.TextContent{Text: skills.Typed(b.Name), Meta: b.Meta}
	case *acpv2.UnknownContentBlock:
		return &acpv1.UnknownContentBlock{Type: b.Type, Raw: b.Raw}
	}
	return nil
}

// closed returns content that an agent has said for clients of version 1. In the place of a kind that
// version 1 does not have there is a text which says so.
func closed(b acpv2.ContentBlock) acpv2.ContentBlock {
	switch u := b.(type) {
	case *acpv2.SkillReference:
		return &acpv2.TextContent{Text: skills.Typed(u.Name), Meta: u.Meta}
	case *acpv2.UnknownContentBlock:
		if !isOwn(u.Type) {
			return &acpv2.TextContent{Text: "[content of the unknown type " + strings.ToValidUTF8(u.Type[:min(len(u.Type), 100)], "") + "]"}
		}
	}
	return b
}

func textToV1(b *acpv2.TextContent) *acpv1.TextContent {
	return &acpv1.TextContent{Text: b.Text, Annotations: annotationsToV1(b.Annotations), Meta: b.Meta, Unknown: b.Unknown}
}

func annotationsFromV1(a *acpv1.Annotations) *acpv2.Annotations {
	if a == nil {
		return nil
	}
	v := &acpv2.Annotations{Audience: each(a.Audience, text[acpv2.Role]), LastModified: a.LastModified, Meta: a.Meta, Unknown: a.Unknown}
	if p := a.Priority; p != nil && *p >= 0 && *p <= 1 {
		v.Priority = p
	}
	return v
}

func annotationsToV1(a *acpv2.Annotations) *acpv1.Annotations {
	if a == nil {
		return nil
	}
	return &acpv1.Annotations{Audience: each(a.Audience, text[acpv1.Role]), LastModified: a.LastModified, Priority: a.Priority,
		Meta: a.Meta, Unknown: a.Unknown}
}

func resourceFromV1(r acpv1.EmbeddedResourceResource) acpv2.EmbeddedResourceResource {
	switch r := r.(type) {
	case *acpv1.TextResourceContents:
		return &acpv2.TextResourceContents{Text: r.Text, URI: r.URI, MIMEType: r.MIMEType, Meta: r.Meta, Unknown: r.Unknown}
	case *acpv1.BlobResourceContents:
		return &acpv2.BlobResourceContents{Blob: r.Blob, URI: r.URI, MIMEType: r.MIMEType, Meta: r.Meta, Unknown: r.Unknown}
	}
	return nil
}

func resourceToV1(r acpv2.EmbeddedResourceResource) acpv1.EmbeddedResourceResource {
	switch r := r.(type) {
	case *acpv2.TextResourceContents:
		return &acpv1.TextResourceContents{Text: r.Text, URI: r.URI, MIMEType: r.MIMEType, Meta: r.Meta, Unknown: r.Unknown}
	case *acpv2.BlobResourceContents:
		return &acpv1.BlobResourceContents{Blob: r.Blob, URI: r.URI, MIMEType: r.MIMEType, Meta: r.Meta, Unknown: r.Unknown}
	}
	return nil
}
