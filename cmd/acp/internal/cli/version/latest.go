package version

// latest is the latest release that this source follows or is. Written by .ci/release.
var latest = release{version: "", commit: "", time: ""}
