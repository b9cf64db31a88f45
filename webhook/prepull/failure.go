package prepull

// IsPullFailure tells the reasons of a waiting container whose image cannot be pulled, as the kubelet words them.
func IsPullFailure(reason string) bool {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		return true
	}
	return false
}
