package console

func (h *handler) accessRoutes() []route { return nil }

var accessNotices = map[string]string{}
