package sandbox

import (
	"fmt"
	"net/http"
	"time"
)

// problem is an error response of the contract: {error_code, message}.
type problem struct {
	kind       kind
	message    string        // contains no PIN
	conflict   string        // PIN_CONFLICT: the code that has the PIN
	retryAfter time.Duration // 0 if none
}

type kind struct {
	status int
	code   string
}

var (
	invalidRequest       = kind{http.StatusBadRequest, "INVALID_REQUEST"}
	unauthorized         = kind{http.StatusUnauthorized, "UNAUTHORIZED"}
	loginRefused         = kind{http.StatusUnauthorized, "LOGIN_REFUSED"}
	secondFactorRequired = kind{http.StatusUnauthorized, "SECOND_FACTOR_REQUIRED"}
	secondFactorRefused  = kind{http.StatusUnauthorized, "SECOND_FACTOR_REFUSED"}
	lockNotFound         = kind{http.StatusNotFound, "LOCK_NOT_FOUND"}
	codeNotFound         = kind{http.StatusNotFound, "ACCESS_CODE_NOT_FOUND"}
	webhookNotFound      = kind{http.StatusNotFound, "WEBHOOK_NOT_FOUND"}
	pinConflict          = kind{http.StatusConflict, "PIN_CONFLICT"}
	deviceFull           = kind{http.StatusConflict, "DEVICE_FULL"}
	deviceOffline        = kind{http.StatusConflict, "DEVICE_OFFLINE"}
	lockJammed           = kind{http.StatusConflict, "LOCK_JAMMED"}
	invalidPIN           = kind{http.StatusUnprocessableEntity, "INVALID_PIN"}
	invalidName          = kind{http.StatusUnprocessableEntity, "INVALID_NAME"}
	invalidTimeFrame     = kind{http.StatusUnprocessableEntity, "INVALID_TIME_FRAME"}
	subscriptionRequired = kind{http.StatusPaymentRequired, "SUBSCRIPTION_REQUIRED"}
	notSupported         = kind{http.StatusUnprocessableEntity, "NOT_SUPPORTED"}
	deviceBusy           = kind{http.StatusLocked, "DEVICE_BUSY"}
	rateLimited          = kind{http.StatusTooManyRequests, "RATE_LIMITED"}
	deviceError          = kind{http.StatusInternalServerError, "DEVICE_ERROR"}
	invalidSetting       = kind{http.StatusUnprocessableEntity, "INVALID_SETTING"}
	thresholdNotFound    = kind{http.StatusNotFound, "NOISE_THRESHOLD_NOT_FOUND"}
	unavailable          = kind{http.StatusServiceUnavailable, "SERVICE_UNAVAILABLE"}
	systemNotFound       = kind{http.StatusNotFound, "SYSTEM_NOT_FOUND"}
	userNotFound         = kind{http.StatusNotFound, "USER_NOT_FOUND"}
	groupNotFound        = kind{http.StatusNotFound, "GROUP_NOT_FOUND"}
	entranceNotFound     = kind{http.StatusNotFound, "ENTRANCE_NOT_FOUND"}
	unlockRefused        = kind{http.StatusConflict, "UNLOCK_REFUSED"}
	systemOffline        = kind{http.StatusConflict, "SYSTEM_OFFLINE"}
	systemFull           = kind{http.StatusConflict, "SYSTEM_FULL"}
	invalidUser          = kind{http.StatusUnprocessableEntity, "INVALID_USER"}
)

func refuse(k kind, format string, args ...any) *problem {
	return &problem{kind: k, message: fmt.Sprintf(format, args...)}
}
