package console

func (h *handler) climateRoutes() []route { return nil }

var climateNotices = map[string]string{}
