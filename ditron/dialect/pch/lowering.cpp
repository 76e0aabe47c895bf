//===- lowering.cpp - The unit that the precompiled header lowering.h belongs to ------------------------*- C++ -*-===//
//
// Empty on purpose: an object library needs a source.
//
//===--------------------------------------------------------------------------------------------------------------===//
