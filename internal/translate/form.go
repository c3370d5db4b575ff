package translate

import (
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// FormFromV1 converts the fields of a form. For the error see
// [ElicitationFromV1].
func FormFromV1(s acpv1.ElicitationSchema) (acpv2.ElicitationSchema, error) {
	v := acpv2.ElicitationSchema{Title: s.Title, Required: s.Required, Description: s.Description, Meta: s.Meta, Unknown: s.Unknown}
	if s.Properties != nil {
		v.Properties = make([]acpv2.ElicitationProperty, len(s.Properties))
	}
	for i, p := range s.Properties {
		f, err := fieldFromV1(p.Schema)
		if err != nil {
			return acpv2.ElicitationSchema{}, err
		}
		v.Properties[i] = acpv2.ElicitationProperty{Name: p.Name, Schema: f}
	}
	return v, nil
}

func fieldFromV1(f acpv1.ElicitationPropertySchema) (acpv2.ElicitationPropertySchema, error) {
	switch f := f.(type) {
	case *acpv1.StringPropertySchema:
		if noChoice(f.Enum) || noChoice(f.OneOf) {
			return nil, unsupported("a field with a list of no choices")
		}
		return &acpv2.StringPropertySchema{Title: f.Title, Description: f.Description, MinLength: f.MinLength, MaxLength: f.MaxLength,
			Pattern: f.Pattern, Format: acpv2.StringFormat(f.Format), Default: f.Default, Enum: f.Enum,
			OneOf: each(f.OneOf, enumFromV1), Meta: f.Meta, Unknown: f.Unknown}, nil
	case *acpv1.NumberPropertySchema:
		return (*acpv2.NumberPropertySchema)(f), nil
	case *acpv1.IntegerPropertySchema:
		return (*acpv2.IntegerPropertySchema)(f), nil
	case *acpv1.BooleanPropertySchema:
		return (*acpv2.BooleanPropertySchema)(f), nil
	case *acpv1.MultiSelectPropertySchema:
		v := &acpv2.MultiSelectPropertySchema{Title: f.Title, Description: f.Description, MinItems: f.MinItems, MaxItems: f.MaxItems,
			Default: f.Default, Meta: f.Meta, Unknown: f.Unknown}
		switch items := f.Items.(type) {
		case *acpv1.StringMultiSelectItems:
			if len(items.Enum) == 0 {
				return nil, unsupported("a field with a list of no choices")
			}
			v.Items = (*acpv2.StringMultiSelectItems)(items)
		case *acpv1.TitledMultiSelectItems:
			if len(items.AnyOf) == 0 {
				return nil, unsupported("a field with a list of no choices")
			}
			v.Items = &acpv2.TitledMultiSelectItems{AnyOf: each(items.AnyOf, enumFromV1), Meta: items.Meta, Unknown: items.Unknown}
		case *acpv1.UnknownMultiSelectItems:
			v.Items = &acpv2.UnknownMultiSelectItems{Type: items.Type, Raw: items.Raw}
		}
		return v, nil
	case *acpv1.UnknownElicitationPropertySchema:
		return &acpv2.UnknownElicitationPropertySchema{Type: f.Type, Raw: f.Raw}, nil
	}
	return nil, nil
}

// noChoice reports a list that is there and empty; an absent one restricts
// nothing.
func noChoice[T any](list []T) bool { return list != nil && len(list) == 0 }

// FormToV1 converts the fields of a form.
func FormToV1(s acpv2.ElicitationSchema) acpv1.ElicitationSchema {
	return acpv1.ElicitationSchema{Title: s.Title, Required: s.Required, Description: s.Description, Meta: s.Meta, Unknown: s.Unknown,
		Properties: each(s.Properties, func(p acpv2.ElicitationProperty) acpv1.ElicitationProperty {
			return acpv1.ElicitationProperty{Name: p.Name, Schema: fieldToV1(p.Schema)}
		})}
}

func fieldToV1(f acpv2.ElicitationPropertySchema) acpv1.ElicitationPropertySchema {
	switch f := f.(type) {
	case *acpv2.StringPropertySchema:
		return &acpv1.StringPropertySchema{Title: f.Title, Description: f.Description, MinLength: f.MinLength, MaxLength: f.MaxLength,
			Pattern: f.Pattern, Format: acpv1.StringFormat(f.Format), Default: f.Default, Enum: f.Enum,
			OneOf: each(f.OneOf, enumToV1), Meta: f.Meta, Unknown: f.Unknown}
	case *acpv2.NumberPropertySchema:
		return (*acpv1.NumberPropertySchema)(f)
	case *acpv2.IntegerPropertySchema:
		return (*acpv1.IntegerPropertySchema)(f)
	case *acpv2.BooleanPropertySchema:
		return (*acpv1.BooleanPropertySchema)(f)
	case *acpv2.MultiSelectPropertySchema:
		v := &acpv1.MultiSelectPropertySchema{Title: f.Title, Description: f.Description, MinItems: f.MinItems, MaxItems: f.MaxItems,
			Default: f.Default, Meta: f.Meta, Unknown: f.Unknown}
		switch items := f.Items.(type) {
		case *acpv2.StringMultiSelectItems:
			v.Items = (*acpv1.StringMultiSelectItems)(items)
		case *acpv2.TitledMultiSelectItems:
			v.Items = &acpv1.TitledMultiSelectItems{AnyOf: each(items.AnyOf, enumToV1), Meta: items.Meta, Unknown: items.Unknown}
		case *acpv2.UnknownMultiSelectItems:
			v.Items = &acpv1.UnknownMultiSelectItems{Type: items.Type, Raw: items.Raw}
		}
		return v
	case *acpv2.UnknownElicitationPropertySchema:
		return &acpv1.UnknownElicitationPropertySchema{Type: f.Type, Raw: f.Raw}
	}
	return nil
}

func enumFromV1(o acpv1.EnumOption) acpv2.EnumOption { return acpv2.EnumOption(o) }

func enumToV1(o acpv2.EnumOption) acpv1.EnumOption { return acpv1.EnumOption(o) }
