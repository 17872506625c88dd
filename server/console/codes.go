package console

func (h *handler) codeRoutes() []route { return nil }

var codeNotices = map[string]string{}
