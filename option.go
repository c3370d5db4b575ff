package acp

// Choice returns an option that is chosen from a list of values, which are shown
// as they are; current is one of them. A category tells clients what the option is: a mode, a model.
func Choice(id SessionConfigID, name string, category SessionConfigOptionCategory, current SessionConfigValueID, values ...SessionConfigValueID) SessionConfigOption {
	list := make(SessionConfigSelectOptionList, len(values))
	for i, v := range values {
		list[i] = SessionConfigSelectOption{Value: v, Name: string(v)}
	}
	return SessionConfigOption{
		ConfigID: id, Name: name, Category: category,
		Kind: &SessionConfigSelect{CurrentValue: current, Options: list},
	}
}

// Switch returns an option that is on or off.
func Switch(id SessionConfigID, name string, on bool) SessionConfigOption {
	return SessionConfigOption{ConfigID: id, Name: name, Kind: &SessionConfigBoolean{CurrentValue: on}}
}
