package console

func (h *handler) webhookRoutes() []route { return nil }

var webhookNotices = map[string]string{}
