package console

func (h *handler) accountRoutes() []route { return nil }

var accountNotices = map[string]string{}
