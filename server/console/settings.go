package console

func (h *handler) settingsRoutes() []route { return nil }

var settingsNotices = map[string]string{}
