package console

func (h *handler) peopleRoutes() []route { return nil }

var peopleNotices = map[string]string{}
