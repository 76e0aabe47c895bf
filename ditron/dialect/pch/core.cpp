//===- core.cpp - The unit that the precompiled header core.h belongs to --------------------------------*- C++ -*-===//
//
// Empty on purpose: an object library needs a source.
//
//===--------------------------------------------------------------------------------------------------------------===//
