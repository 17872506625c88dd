package console

func (h *handler) activityRoutes() []route { return nil }
